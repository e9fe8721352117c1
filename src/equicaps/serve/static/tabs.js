// Tabs, of which one panel is visible. The address remembers which; the arrow keys move from one to the next.

// `shown` has a function for each name of a panel, which is called whenever the panel becomes visible.
export function offerTabs(shown) {
  const names = Object.keys(shown);
  const tab = (name) => document.getElementById(`tab-${name}`);
  document.getElementById("tabs").hidden = names.length < 2;

  function choose(name) {
    for (const each of names) {
      tab(each).setAttribute("aria-selected", each === name);
      tab(each).tabIndex = each === name ? 0 : -1;
      document.getElementById(each).hidden = each !== name;
    }
    shown[name]();
  }

  function pick(name) {
    history.replaceState(null, "", `#${name}`); // unlike a link, it does not scroll
    choose(name);
  }

  const inAddress = () => names.find((name) => location.hash === `#${name}`) ?? names[0];
  names.forEach((name, k) => {
    tab(name).addEventListener("click", () => pick(name));
    tab(name).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = names[(k + step + names.length) % names.length];
      pick(next);
      tab(next).focus();
    });
  });
  window.addEventListener("hashchange", () => choose(inAddress()));
  choose(inAddress());
}
