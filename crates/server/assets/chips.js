// Makes the inbox live. Every page works without it: it sends the same forms and shows the cards that the server renders.
"use strict";
(() => {
  const { body } = document, view = body.dataset.page, piece = view === "ask" ? "page" : "list";
  const words = JSON.parse(body.dataset.words);
  const say = (word, places) => words[word].replace(/\{(\w+)\}/g, (_, name) => places[name]);
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, props, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };
  const blank = (text) => !text?.trim();
  const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

  // Time: the server's clock, carried on by this machine's monotonic one. What the device's clock says does not matter.
  const tickOf = () => performance.now();
  let ahead = body.dataset.now - (performance.getEntriesByType("navigation")[0]?.responseStart || tickOf());
  const now = () => ahead + tickOf();
  const clock = (ms) => { if (ms) ahead = ms - tickOf(); };
  const { lang } = document.documentElement;
  const locale = navigator.language?.startsWith(lang) ? navigator.language : lang;
  const unit = (n, name) => new Intl.NumberFormat(locale, { style: "unit", unit: name, unitDisplay: "narrow" }).format(Math.floor(n));
  const hour = { hour: "2-digit", minute: "2-digit" };
  const hours = new Intl.DateTimeFormat(locale, hour);
  const dates = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", ...hour });
  function left(ms) {
    const s = Math.ceil(ms / 1000);
    if (s <= 0) return say("due");
    const t = s < 3600 ? `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`
      : s < 86400 ? `${unit(s / 3600, "hour")} ${unit((s % 3600) / 60, "minute")}`
      : `${unit(s / 86400, "day")} ${unit((s % 86400) / 3600, "hour")}`;
    return say("until", { t });
  }
  function tell(time) {
    const at = Date.parse(time.dateTime), kind = time.dataset.t, s = (now() - at) / 1000;
    const day = (ms) => new Date(ms).toDateString();
    const text = kind === "until" ? left(-s * 1000)
      : kind === "ago" && s < 86400 ? (s < 60 ? say("now") : s < 3600 ? unit(s / 60, "minute") : unit(s / 3600, "hour"))
      : (day(at) === day(now()) ? hours : dates).format(at);
    if (time.textContent !== text) time.textContent = text;
  }
  function drain(card) {
    const ms = card.dataset.deadline - now();
    card.classList.toggle("hurry", ms < 60000);
    all("progress", card).forEach((bar) => { bar.value = bar.max - ms; });
  }

  // Drafts: what was typed survives a reload, a closed question and a session that has ended.
  const DRAFTS = "chips-drafts", FIELDS = ["t0", "t1", "t2", "t3"], WEEK = 7 * 864e5;
  const drafts = () => { try { return JSON.parse(localStorage[DRAFTS]); } catch { return {}; } };
  const named = (card, field) => [body.dataset.person, card.dataset.ask, field].join();
  const draft = (card, field) => drafts()[named(card, field)]?.[0];
  function store(card, fields, text) {
    const kept = Object.fromEntries(Object.entries(drafts()).filter(([, [, at]]) => Date.now() - at < WEEK));
    fields.forEach((field) => {
      if (blank(text)) delete kept[named(card, field)]; else kept[named(card, field)] = [text, Date.now()];
    });
    try { localStorage[DRAFTS] = JSON.stringify(kept); } catch { /* no storage: the text lives as long as the page */ }
  }
  const held = (card) => all("textarea", card).map((area) => area.value).filter((text) => !blank(text));

  // Cards
  const latest = new Map();
  const byId = (id) => document.getElementById(id);
  const seq = (card) => Number(card.dataset.seq), isOpen = (card) => card.dataset.state === "open";
  const isBusy = (card) => card?.classList.contains("sending");
  const newest = (id) => latest.get(id) ?? 0;
  const note = (id, n) => latest.set(id, Math.max(n, newest(id)));

  // A card that has just appeared or moved takes no tap for 400 ms: the finger meant what was there before.
  const stirred = new WeakMap(), top = (card) => card.getBoundingClientRect().top;
  function shift(change) {
    const before = new Map(all(".card").map((card) => [card, top(card)]));
    change();
    all(".card").forEach((card) => { if (!(Math.abs(before.get(card) - top(card)) <= 2)) stirred.set(card, tickOf()); });
  }
  document.addEventListener("click", (event) => {
    const { target } = event, card = target.closest(".card");
    if (event.detail && card && tickOf() - stirred.get(card) < 400) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (target.closest(".all")) {
      event.preventDefault();
      shift(() => { target.closest("form").classList.remove("folded"); target.remove(); });
    }
  }, true);

  const watcher = new IntersectionObserver((seen) => seen.forEach(({ isIntersecting, target }) => {
    if (!isIntersecting) return;
    watcher.unobserve(target);
    refresh(target.dataset.ask);
  }), { rootMargin: "500px" });
  function dress(card) {
    all("time", card).forEach(tell);
    if (card.dataset.deadline) drain(card);
    if ("stub" in card.dataset) watcher.observe(card);
    all("form textarea", card).filter((area) => blank(area.value) && !blank(draft(card, area.name))).forEach((area) => {
      area.value = draft(card, area.name);
      meant(area);
    });
    all("textarea", card).forEach(grow);
    const form = one("form", card);
    if (form) count(form);
    if (!isOpen(card)) keep(card, FIELDS.map((field) => draft(card, field)));
  }
  // What was typed and not sent stays with the closed card, to be copied.
  function keep(card, texts) {
    let kept = one(".kept", card);
    const areas = () => all("textarea", kept), shown = kept ? areas().map((area) => area.value) : [];
    const more = texts.filter((text) => !blank(text) && !shown.includes(text) && !one(".box", card).textContent.includes(text.trim()));
    if (more.length && !kept) one(".box", card).append((kept = make("div", { className: "kept" })));
    more.forEach((text) => kept.append(make("label", {}, make("span", {}, say("kept")), make("textarea", { readOnly: true, rows: 3, dir: "auto", value: text }))));
    if (!kept || one("button", kept)) return;
    const copy = async ({ target }) => {
      try { await navigator.clipboard.writeText(areas().map((area) => area.value).join("\n\n")); } catch { areas()[0].select(); document.execCommand("copy"); }
      target.textContent = say("copied");
    };
    const discard = () => { store(card, FIELDS); shift(() => kept.remove()); };
    kept.append(make("p", { className: "do" }, button("copy", copy), button("discard", discard)));
  }
  const button = (word, onclick) => make("button", { type: "button", className: "plain", onclick }, say(word));

  const shelf = (card) => one(`[data-shelf=${card.dataset.shelf}] > .cards`);
  function insert(card) {
    const cards = shelf(card), others = [...(cards?.children ?? [])];
    if (!cards) return;
    if (!isOpen(card)) {
      cards.prepend(card);
      return others.slice(4).forEach((old) => { if (!one(".kept", old)) old.remove(); });
    }
    const same = (a, b) => a?.dataset.run === b?.dataset.run, later = (other) => other.dataset.order > card.dataset.order;
    const mates = others.filter((other) => same(other, card));
    const next = mates.length ? mates.find(later) ?? mates.at(-1).nextSibling : others.find((other, at) => !same(other, others[at - 1]) && later(other));
    cards.insertBefore(card, next ?? null);
  }
  function totals() {
    all(".shelf:not([data-shelf=closed]) > .cards > .card").forEach((card) => {
      card.classList.toggle("again", card.previousElementSibling?.dataset.run === card.dataset.run);
    });
    const list = one("#list"), badge = one("[data-count]");
    if (!list) return;
    const open = all("[data-state=open]", list), n = open.length, many = n + ("more" in list.dataset ? "+" : "");
    const waiting = open.filter((card) => card.dataset.shelf === "waiting").length;
    document.title = (n ? `(${many}) ` : "") + document.title.replace(/^\(\d+\+?\) /, "");
    one("[data-hero]").textContent = say(waiting > 1 ? "waits" : `waits${waiting}`, { n: waiting });
    badge.hidden = !n;
    badge.textContent = many;
    navigator.setAppBadge?.(n).catch(() => {});
  }
  const announce = (word, what) => { one("#said").textContent = say(word, { what: what.textContent.trim().slice(0, 140) }); };

  // Puts a card that the server rendered where it belongs. An older one never takes the place of a newer.
  function place(card, unsent) {
    const id = card.dataset.ask, old = byId(id);
    if (seq(card) < Math.max(newest(id), old ? seq(old) : 0)) return;
    note(id, seq(card));
    const arrived = !old && isOpen(card), closed = old && isOpen(old) && !isOpen(card);
    // The open card that is there may hold what somebody is typing.
    if (old && isOpen(card) && isOpen(old) && !unsent && !("stub" in old.dataset) && (old.dataset.shelf === card.dataset.shelf || held(old).length)) return;
    shift(() => {
      const focused = old?.contains(document.activeElement), texts = unsent ?? (old ? held(old) : []);
      old?.replaceWith(card);
      if (!old || (isOpen(card) && old.dataset.shelf !== card.dataset.shelf)) insert(card);
      if (!isOpen(card)) keep(card, texts);
      if (focused) card.focus({ preventScroll: true });
      totals();
    });
    if (!card.isConnected) return;
    dress(card);
    if (arrived) {
      card.classList.add("fresh");
      announce("arrived", byId(`p-${id}`));
    } else if (closed) {
      announce("closed", one(".says", card));
      setTimeout(settle, 4000, card);
      // That the answer has arrived is no event.
      if (!list) setTimeout(refresh, 3000, id);
    }
  }
  // A closed card goes to its shelf once it has been seen, unless somebody is busy with it.
  function settle(card) {
    if (!card.isConnected || !shelf(card) || card.parentNode === shelf(card) || one(".kept", card)) return;
    if (document.hidden || card.matches(":hover, :focus-within")) setTimeout(settle, 3000, card);
    else shift(() => { insert(card); totals(); });
  }

  // Sending
  function line(box, text, ...more) {
    one(":scope > .state", box)?.remove();
    if (text) box.append(make("div", { className: "state", role: "status" }, make("span", {}, text), ...more));
  }
  const signInPath = () => `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
  const signIn = () => make("a", { className: "plain", href: signInPath() }, say("signIn"));
  document.addEventListener("submit", (event) => {
    const form = event.target, card = form.closest(".card"), by = event.submitter;
    if ("signOut" in form.dataset) localStorage.removeItem(DRAFTS);
    if (!card) return;
    event.preventDefault();
    if (isBusy(card)) return;
    const data = new URLSearchParams(new FormData(form)), unsent = [];
    if (by?.name) data.append(by.name, by.value);
    // Beside radio buttons the one that is chosen says what is meant; the text stays a draft.
    all(".pick input", form).forEach((pick) => {
      const area = one("textarea", pick.closest(".own"));
      if (pick.checked || !data.has(pick.name) || blank(area.value)) return;
      data.delete(area.name);
      unsent.push(area.value);
    });
    card.classList.add("sending");
    by?.classList.add("sent");
    send(card, form.action, data, unsent, 0);
  });
  async function send(card, url, data, unsent, tries) {
    const box = one(".box", card), slow = setTimeout(line, 700, box, say("sending"));
    let response, text;
    try {
      response = await fetch(url, { method: "POST", body: data, headers: { "x-chips-piece": piece }, signal: AbortSignal.timeout(20000) });
      text = await response.text();
    } catch { response = null; }
    clearTimeout(slow);
    if (!response || response.status >= 500) {
      // The same ids go out again, so it arrives once however often it is sent.
      const again = () => {
        clearTimeout(timer);
        removeEventListener("online", again);
        line(box);
        send(card, url, data, unsent, tries + 1);
      };
      const timer = setTimeout(again, Math.min(1000 * 2 ** tries, 10000));
      addEventListener("online", again);
      return line(box, say(response ? "busy" : "unsent"), button("retry", again));
    }
    const page = parsed(text), fresh = one(".card", page), id = card.dataset.ask;
    card.classList.remove("sending");
    all(".sent", card).forEach((by) => by.classList.remove("sent"));
    line(box);
    if (fresh) {
      if (response.ok && !isOpen(fresh) && !one(".kept", fresh)) store(card, FIELDS.filter((field) => data.has(field)));
      place(fresh, unsent);
    } else if (response.status === 401) line(box, say("signedOut"), signIn());
    else line(box, response.status === 404 ? say("gone") : one(".say", page)?.innerText ?? say("busy"));
    // What was told while this was under way.
    if (newest(id) > seq(byId(id) ?? card)) refresh(id);
  }

  // Forms
  const grows = CSS.supports("field-sizing", "content");
  function grow(area) {
    if (grows) return;
    area.style.height = 0;
    area.style.height = `${area.scrollHeight}px`;
  }
  function meant(area) {
    const q = area.closest(".q"), pick = one(".pick input", q), none = one("[value=none]", q);
    if (pick) pick.checked = !blank(area.value);
    if (none && !blank(area.value)) none.checked = false;
    grow(area);
    count(area.form);
  }
  function count(form) {
    if (!form.matches(".several")) return;
    const of = all(".q", form), send = one(":scope > .send", form);
    of.forEach((q) => {
      const area = one("textarea", q), text = !blank(area?.value), pick = one(".pick input", q), chosen = one(":checked:not([value=text])", q);
      one(".drafted", q)?.remove();
      if (pick && text && chosen) q.append(make("p", { className: "hint drafted" }, say("draft")));
      q.classList.toggle("answered", Boolean(chosen) || text);
    });
    const n = all(".answered", form).length;
    if (!send.name) send.textContent = n && n < of.length ? say("sendSome", { n, all: of.length }) : say("send");
  }
  document.addEventListener("input", ({ target }) => {
    if (!target.matches("form textarea")) return;
    store(target.closest(".card"), [target.name], target.value);
    meant(target);
  });
  document.addEventListener("change", ({ target }) => {
    const q = target.closest(".q");
    if (!q) return;
    if (target.type === "checkbox" && target.checked) {
      all(":checked", q).forEach((other) => { if ((other.value === "none") !== (target.value === "none")) other.checked = false; });
    }
    if (target.value === "text") one("textarea", q).focus();
    count(target.form);
  });
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    // Enter while composing ends a word. On a touch screen it is a new line.
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229 || !target.matches("form textarea")) return;
    if (event.shiftKey || event.altKey || (!event.ctrlKey && !event.metaKey && matchMedia("(pointer: coarse)").matches)) return;
    event.preventDefault();
    if (!blank(target.value)) target.form.requestSubmit(one(".send", target.form));
  });

  // Live
  const list = view === "list", paged = /[?&]before=/.test(location.search), status = one("#status");
  let source, log, seen = Number(one("#list")?.dataset.head), heard = 0, opened = 0, polled = 0, hidden = 0, asking, over;
  function ended() {
    if (over) return;
    over = true;
    source.close();
    if (held(body).length) line(status, say("signedOut"), signIn()); else location.replace(signInPath());
  }
  const queue = new Set();
  let running = 0;
  function refresh(id) {
    queue.add(id);
    while (running < 4 && queue.size) {
      const [next] = queue;
      queue.delete(next);
      running++;
      load(next).finally(() => { running--; if (queue.size) refresh([...queue][0]); });
    }
  }
  async function load(id) {
    const response = await fetch(`/fragments/asks/${id}?view=${piece}`).catch(() => ({})), card = byId(id);
    if (response.status === 401) ended();
    else if (isBusy(card)) return;
    else if (response.ok) place(one(".card", parsed(await response.text())));
    else if (response.status === 404 && card) {
      if (held(card).length) line(one(".box", card), say("gone"));
      else shift(() => { card.remove(); totals(); });
    }
  }
  async function resync(force) {
    if (asking || over) return;
    asking = true;
    polled = tickOf();
    try {
      if (!list || paged) return all(".card").forEach((card) => refresh(card.dataset.ask));
      const response = await fetch(`/fragments/list${force ? "" : `?head=${seen}`}`);
      if (response.status === 401) ended();
      if (!response.ok) return;
      line(status);
      clock(response.headers.get("x-chips-now"));
      if (response.status !== 204) take(one("#list", parsed(await response.text())));
    } catch { line(status, say("offline")); } finally { asking = false; }
  }
  // Takes a list in. It is as old as its head: what is known to have happened after that stands.
  function take(fresh) {
    const head = Number(fresh.dataset.head), old = (card) => newest(card.dataset.ask) <= head && !isBusy(byId(card.dataset.ask));
    clock(fresh.dataset.now);
    one("#list").toggleAttribute("data-more", "more" in fresh.dataset);
    all("#list [data-state=open]").filter((card) => old(card) && !one(`[data-ask=${card.dataset.ask}]`, fresh)).forEach((card) => refresh(card.dataset.ask));
    all(".card", fresh).filter(old).reverse().forEach((card) => {
      const here = byId(card.dataset.ask);
      if (!here || isOpen(here)) place(card);
    });
    seen = Math.max(seen, head);
  }
  function connect() {
    source?.close();
    opened = tickOf();
    heard = opened - 15000;
    let first = true;
    source = new EventSource(list ? `/live?after=${seen}` : "/live");
    const on = (name, act) => source.addEventListener(name, ({ data }) => { heard = tickOf(); act(JSON.parse(data)); });
    on("beat", (beat) => clock(beat.now));
    on("hello", (hello) => {
      const other = hello.resync || (log && log !== hello.log);
      clock(hello.now);
      line(status);
      if (other) { seen = 0; latest.clear(); }
      if (other || !first || !list) resync(true);
      first = false;
      log = hello.log;
    });
    on("ask", (event) => {
      const id = event.ask_id, card = byId(id);
      seen = Math.max(seen, event.seq);
      note(id, event.seq);
      if (card ? !isBusy(card) : list && !paged) refresh(id);
    });
    source.onerror = () => { if (source.readyState === 2) resync(); };
  }
  // Where the stream says nothing (a proxy, a phone that slept), the list is asked for instead.
  function watch() {
    const time = tickOf(), idle = time - polled;
    if (over) return;
    if (hidden && time - hidden > 300000) {
      // A page that nobody looks at gives its connection back: browsers allow few to one host.
      source.close();
      if (idle > 20000) resync();
    } else if (time - heard > 20000) {
      if (idle > 3000) resync();
      if (time - opened > 30000) connect();
    }
  }
  function wake() {
    if (over) return;
    if (source.readyState === 2 || tickOf() - heard > 16000) connect();
    resync();
  }

  let ticks = 0, ticked = Date.now();
  function tick() {
    if (source && Math.abs(Date.now() - ticked - 1000) > 5000) wake();
    ticked = Date.now();
    all(ticks++ % 20 ? "time[data-t=until]" : "time[data-t]").forEach(tell);
    all("[data-deadline]").forEach(drain);
  }
  if (list || view === "ask") {
    all(".card").forEach((card) => { note(card.dataset.ask, seq(card)); dress(card); });
    totals();
    connect();
    setInterval(watch, 1000);
    document.addEventListener("visibilitychange", () => {
      hidden = document.hidden && tickOf();
      if (!hidden) wake();
    });
    addEventListener("online", wake);
    addEventListener("offline", () => line(status, say("offline")));
  }
  tick();
  setInterval(tick, 1000);
  // A page out of memory may be from before the sign-out.
  addEventListener("pageshow", ({ persisted }) => { if (persisted) source ? wake() : location.reload(); });
})();
