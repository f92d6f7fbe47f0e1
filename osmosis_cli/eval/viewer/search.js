// The list of evaluations, searched while one types: the form asks the server, where scripts are off.
const field = document.querySelector("[name=q]");
const entries = [...document.querySelectorAll("tr[data-words]")];
document.querySelector("#search")?.setAttribute("hidden", "");

field?.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const entry of entries) entry.hidden = !words.every((word) => entry.dataset.words.includes(word));
  for (const family of document.querySelectorAll("tbody"))
    family.hidden = !family.querySelector("tr[data-words]:not([hidden])");
  const shown = entries.filter((entry) => !entry.hidden).length;
  document.querySelector("#count").textContent = `${shown} of ${document.querySelector("#count").dataset.there}`;
});
