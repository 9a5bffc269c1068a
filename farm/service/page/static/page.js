// Without this file every page works: it only shows progress as it goes on, and filters without a reload.
"use strict";

async function loaded(address) {
  const answer = await fetch(address, { credentials: "same-origin", redirect: "error" });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function replaced(there, name, fresh) {
  const found = fresh.querySelector(`[data-${name}="${CSS.escape(there.dataset[name])}"]`);
  if (found) there.replaceWith(document.adoptNode(found));
  return found;
}

async function follow() {
  const main = document.querySelector("main[data-refresh]");
  if (!main) return;
  const pause = () => new Promise((go) => setTimeout(go, 1000 * Number(main.dataset.refresh)));
  for (;;) {
    await pause();
    if (document.hidden) continue;
    let fresh;
    try {
      fresh = await loaded(location.href);
    } catch {
      return; // signed out, or the service has ended: what is shown stays
    }
    for (const there of document.querySelectorAll("[data-live]")) replaced(there, "live", fresh);
    if (!fresh.querySelector("main[data-refresh]")) return;
  }
}

function filtering(form) {
  let asked = 0;
  let timer;
  async function show() {
    const mine = ++asked;
    const words = [...new FormData(form)].filter(([, value]) => value);
    const address = `${form.action}?${new URLSearchParams(words)}`;
    try {
      const fresh = await loaded(address);
      if (mine !== asked) return; // somebody has typed on
      const there = document.querySelector(`[data-part="${form.dataset.filter}"]`);
      const found = replaced(there, "part", fresh);
      history.replaceState(null, "", address);
      document.getElementById("said").textContent = found ? found.dataset.said : "";
    } catch {
      form.submit();
    }
  }
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 250);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    show();
  });
}

for (const form of document.querySelectorAll("form[data-filter]")) filtering(form);
follow();
