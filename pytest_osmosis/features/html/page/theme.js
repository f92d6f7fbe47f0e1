// Light or dark: as the system has it, until somebody chooses.

const PLACE = "osmosis-theme";

export function startTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem(PLACE);
  } catch {
    // a page from a file may have no storage: the choice lasts as long as the page
  }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  document.getElementById("theme").addEventListener("click", switchTheme);
}

export function switchTheme() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme ?? system) === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(PLACE, root.dataset.theme);
  } catch {
    // as above
  }
}
