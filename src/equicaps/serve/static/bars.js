// The table of an answer: one row for each class, with its probability and, if there are two columns, its agreement.

export const percent = (value) => `${(100 * value).toFixed(1)}%`;

export function probabilities(answer, classes) {
  const scores = classes.map((each) => answer.scores[each]);
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

export function makeRows(table, classes, columns) {
  table.classList.toggle("long", classes.some((each) => each.length > 2));
  for (const each of classes) {
    const row = table.tBodies[0].insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = each;
    row.append(head);
    for (let k = 0; k < columns; k += 1) {
      const bar = document.createElement("span");
      bar.className = k ? "bar thin" : "bar";
      bar.setAttribute("aria-hidden", "true");
      bar.append(document.createElement("i"));
      row.insertCell().append(bar);
      row.insertCell();
    }
  }
}

export function fillRows(table, classes, answer) {
  const found = probabilities(answer, classes);
  [...table.tBodies[0].rows].forEach((row, k) => {
    const each = classes[k];
    row.classList.toggle("first", each === answer.label);
    const bars = row.querySelectorAll("i");
    bars[0].style.transform = `scaleX(${found[k]})`;
    row.cells[2].textContent = percent(found[k]);
    if (bars.length === 1) return;
    bars[1].style.transform = `scaleX(${answer.agreements[each]})`;
    row.cells[4].textContent = answer.agreements[each].toFixed(2);
  });
}
