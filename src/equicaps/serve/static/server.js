// Requests to the server.

export async function send(address, options, patience = 5) {
  const response = await fetch(address, options);
  if (response.status === 503 && patience) { // too many others are waiting
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get("Retry-After"))));
    return send(address, options, patience - 1);
  }
  const content = await response.json();
  if (!response.ok) throw new Error(content.detail);
  return content;
}

export const post = (address, content) => send(address, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
});

export const upload = (address, file, type) => send(address, { method: "POST", headers: { "Content-Type": type }, body: file });

// Asks one question at a time; of those that arrive in the meantime only the last is asked.
export function latest(askOnce, complain) {
  let asking = null;
  let again = false;
  return () => {
    again = true;
    asking ??= (async () => {
      try {
        while (again) {
          again = false;
          await askOnce();
        }
      } catch (error) {
        complain(error);
      } finally {
        asking = null;
      }
    })();
    return asking;
  };
}

// Shows what went wrong in an element.
export const complaining = (element) => (error) => {
  element.textContent = error instanceof TypeError ? "The server does not respond. Is it still running?" : error.message;
  element.hidden = false;
};
