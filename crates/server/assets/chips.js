// Makes the inbox live. Every page works without it: it sends the same forms and shows the cards that the server renders.
const doc = document, { body } = doc, { page: view, person, token } = body.dataset, list = view === "list", piece = view === "ask" ? "page" : "list";
const words = JSON.parse(body.dataset.words),
	fill = (text, places) => text.replace(/\{(\w+)\}/g, (_, name) => places[name]),
	say = (word, places) => fill(words[word], places),
	counted = (word, n, more) => fill(words[word][Math.min(n, 2)], { n: n + more }),
	one = (selector, root = doc) => root.querySelector(selector),
	all = (selector, root = doc) => [...root.querySelectorAll(selector)],
	byId = (id) => doc.getElementById(id),
	cardOf = (it) => it.closest(".card"),
	params = (data) => new URLSearchParams(data),
	late = setTimeout,
	on = addEventListener;
function make(tag, props, ...children) {
	const node = Object.assign(doc.createElement(tag), props);
	node.append(...children);
	return node;
}
const button = (word, onclick) => make("button", { type: "button", className: "plain", onclick }, say(word)),
	blank = (text) => !text?.trim(),
	parsed = (html) => new DOMParser().parseFromString(html, "text/html");

// Time: the server's clock, carried on by this machine's monotonic one. What the device's clock says does not matter.
const tickOf = () => performance.now();
let ahead = body.dataset.now - (performance.getEntriesByType("navigation")[0]?.responseStart || tickOf());
const now = () => ahead + tickOf(), clock = (ms) => { if (ms) ahead = ms - tickOf(); };
const { lang } = doc.documentElement, locale = navigator.languages.find((other) => other.startsWith(lang)) ?? lang;
const unit = (n, name) => new Intl.NumberFormat(locale, { style: "unit", unit: name, unitDisplay: "narrow" }).format(Math.floor(n));
const hour = { hour: "2-digit", minute: "2-digit" }, hours = new Intl.DateTimeFormat(locale, hour), dates = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", ...hour });
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

// What this device keeps. Without storage it lives as long as the page.
const load = (name) => { try { return JSON.parse(localStorage[name]); } catch { return {}; } },
	save = (name, kept) => { try { localStorage[name] = JSON.stringify(kept); } catch { /* full, or off */ } };

// Drafts: what was typed survives a reload, a closed question and a session that has ended.
const DRAFTS = "chips-drafts", FIELDS = ["t0", "t1", "t2", "t3"], WEEK = 7 * 864e5;
const named = (card, field) => [person, card.id, field].join(), draft = (card, field) => load(DRAFTS)[named(card, field)]?.[0];
function store(card, fields, text) {
	const kept = Object.fromEntries(Object.entries(load(DRAFTS)).filter(([, [, at]]) => Date.now() - at < WEEK));
	fields.forEach((field) => {
		if (blank(text)) delete kept[named(card, field)]; else kept[named(card, field)] = [text, Date.now()];
	});
	save(DRAFTS, kept);
}
const typed = (root) => all("textarea", root).map((area) => area.value).filter((text) => !blank(text));

// Cards
const latest = new Map(), newest = (id) => latest.get(id) ?? 0, note = (id, n) => latest.set(id, Math.max(n, newest(id)));
const seq = (card) => Number(card.dataset.seq), isOpen = (card) => card.dataset.state === "open", isBusy = (card) => card?.classList.contains("sending");

// A card that has just appeared or moved takes no tap for 400 ms: the finger meant what was there before.
const stirred = new WeakMap(), begun = tickOf(), stirs = (card) => tickOf() - (stirred.get(card) ?? begun) < 400, top = (card) => card.getBoundingClientRect().top;
function shift(change) {
	const before = new Map(all(".card").map((card) => [card, top(card)]));
	change();
	all(".card").forEach((card) => { if (!(Math.abs(before.get(card) - top(card)) <= 2)) stirred.set(card, tickOf()); });
}
// Neither does any card take the click that only brings the window to the front.
// A tap counts from where and when it began. Keys and what assists press what has the focus, which is never a card that came by itself.
let front = -Infinity, keyed = front, early;
on("focus", () => { front = tickOf(); });
on("pointerdown", ({ target }) => {
	const card = cardOf(target);
	early = tickOf() - front < 200 || (card && stirs(card));
	keyed = -2000;
}, true);
on("click", (event) => {
	const { target, detail } = event, card = cardOf(target), meant = !detail && target === doc.activeElement, soon = detail && early;
	early = false;
	if (card && !meant && (soon || stirs(card))) {
		event.preventDefault();
		event.stopImmediatePropagation();
	} else if (isBusy(card) && !target.closest("a, .state")) {
		// Where to look: what was chosen, and how it is undone.
		one(".state", card)?.animate({ opacity: [.3, 1] }, 400);
	} else if (target.closest(".all")) {
		event.preventDefault();
		shift(() => { target.closest("form").classList.remove("folded"); target.remove(); });
	}
}, true);

const watcher = new IntersectionObserver((seen) => seen.forEach(({ isIntersecting, target }) => {
	if (!isIntersecting) return;
	watcher.unobserve(target);
	refresh(target.id);
}), { rootMargin: "500px" });
function dress(card) {
	all("time", card).forEach(tell);
	if (card.dataset.deadline) drain(card);
	if ("stub" in card.dataset) watcher.observe(card);
	all("form textarea", card).filter(({ value }) => blank(value)).forEach(mirror);
	all("textarea", card).forEach(grow);
	all("form", card).forEach(count);
	if (!isOpen(card)) keep(card, FIELDS.map((field) => draft(card, field)));
}
// What was typed and not sent stays with the closed card, to be copied.
function keep(card, texts) {
	const box = one(".box", card), shown = typed(card);
	const more = texts.filter((text) => !blank(text) && !shown.includes(text) && !box.textContent.includes(text.trim()));
	let kept = one(".kept", card);
	if (more.length && !kept) box.append((kept = make("div", { className: "kept" })));
	more.forEach((value) => kept.append(make("label", {}, make("span", {}, say("kept")), make("textarea", { readOnly: true, dir: "auto", value }))));
	if (!kept || one("button", kept)) return;
	const copy = async ({ target }) => {
		try { await navigator.clipboard.writeText(typed(kept).join("\n\n")); } catch { one("textarea", kept).select(); doc.execCommand("copy"); }
		target.textContent = say("copied");
	};
	const discard = () => { store(card, FIELDS); shift(() => kept.remove()); };
	kept.append(make("p", { className: "row" }, button("copy", copy), button("discard", discard)));
}

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
// How many wait and how many do not: on this page, and on the pages behind it.
let beyond = [0, 0];
function onPage() {
	const open = all("#list [data-state=open]"), waits = open.filter((card) => card.dataset.shelf === "waiting").length;
	return [waits, open.length - waits];
}
function behind({ dataset }) {
	const here = onPage(), { waits, others } = dataset;
	beyond = "behind" in dataset ? [waits, others].map((n, at) => Math.max(0, n - here[at])) : [0, 0];
}
function totals() {
	all(".shelf:not([data-shelf=closed]) > .cards > .card").forEach((card) => {
		card.classList.toggle("again", card.previousElementSibling?.dataset.run === card.dataset.run);
	});
	const sheet = one("#list");
	if (!sheet) return;
	const here = onPage(), waits = here[0] + beyond[0], also = here[1] + beyond[1], n = waits + also;
	const more = "more" in sheet.dataset ? "+" : "";
	if (!paged) {
		one("[data-hero]").textContent = counted("waits", waits, more);
		one("[data-also]").textContent = counted("also", also, more);
	}
	// What is sifted or further down does not say how many there are in all.
	if (sift) return;
	const many = n + more, badge = one("[data-count]");
	doc.title = (n ? `(${many}) ` : "") + doc.title.replace(/^\(\d+\+?\) /, "");
	badge.hidden = !n;
	badge.textContent = many;
	navigator.setAppBadge?.(n).catch(() => {});
}
const announce = (word, what) => { byId("said").textContent = say(word, { what: what.innerText.trim().slice(0, 140) }); };

// Puts a card that the server rendered where it belongs. An older one never takes the place of a newer.
function place(card, unsent) {
	const id = card.id, old = byId(id);
	if (seq(card) < Math.max(newest(id), old ? seq(old) : 0)) return;
	note(id, seq(card));
	const arrived = !old && isOpen(card), closed = old && isOpen(old) && !isOpen(card), moves = old?.dataset.shelf !== card.dataset.shelf;
	// The open card that is there may hold what somebody is typing.
	if (old && isOpen(card) && isOpen(old) && !unsent && !("stub" in old.dataset) && (!moves || typed(old).length)) return;
	shift(() => {
		const focused = old?.contains(doc.activeElement), texts = unsent ?? (old ? typed(old) : []);
		old?.replaceWith(card);
		if (!old || (isOpen(card) && moves)) insert(card);
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
		late(settle, 4000, card);
		// That the answer has arrived is no event.
		if (!list) late(refresh, 3000, id);
	}
}
// A closed card goes to its shelf once it has been seen, unless somebody is busy with it.
function settle(card) {
	if (!card.isConnected || !shelf(card) || card.parentNode === shelf(card) || one(".kept", card)) return;
	if (doc.hidden || card.matches(":hover, :focus-within")) late(settle, 3000, card);
	else shift(() => { insert(card); totals(); });
}

// Sending
function line(box, text, ...more) {
	one(":scope > .state", box)?.remove();
	if (text) box.append(make("div", { className: "state", role: "status" }, make("span", {}, text), ...more));
}
const mark = (card, ...what) => line(one(".box", card), ...what);
// While an answer is under way, or can be undone, nothing else on its card can be chosen.
function lock(card, on) {
	card.classList.toggle("sending", on);
	all("form button, form textarea", card).forEach((it) => { it.ariaDisabled = on || null; });
}
function free(card) {
	lock(card, false);
	all(".sent", card).forEach((by) => by.classList.remove("sent"));
	mark(card);
}
const signInPath = () => `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`, signIn = () => make("a", { className: "plain", href: signInPath() }, say("signIn"));
on("submit", (event) => {
	const form = event.target, card = cardOf(form), by = event.submitter;
	if ("signOut" in form.dataset) localStorage.clear();
	if ("pushOff" in form.dataset) {
		event.preventDefault();
		return silence().finally(() => form.submit());
	}
	if (!card) return;
	event.preventDefault();
	if (isBusy(card)) return;
	const data = params(new FormData(form, by)), unsent = [];
	// Where one is taken, the option that is chosen says what is meant; a text beside it stays a draft.
	all(".q:not(:has(.tick)) textarea", form).forEach(({ name, value }) => {
		if (blank(value) || !(data.get(name.replace("t", "q")) ?? "text").match(/\d/)) return;
		data.delete(name);
		unsent.push(value);
	});
	const go = () => {
		const chosen = all(".chip:is(.sent, :has(:checked)) .t", form).map((t) => t.textContent);
		const what = [...chosen, ...FIELDS.map((field) => data.get(field)).filter((text) => !blank(text))].join(", ");
		hold(card.id, [person, `${data}`, what, one(".prompt", form).textContent]);
		send(card, form.action, data, unsent, 0);
	}, room = (card.dataset.deadline ?? Infinity) - now();
	lock(card, true);
	by?.classList.add("sent");
	// The chance to undo never takes an answer near its deadline.
	const wait = by?.matches(".tap .chip") && room >= 10000 ? Math.min(body.dataset.undo, room - 2000) : 0;
	if (wait > 0) defer(card, by, wait, go); else go();
});
// A tap that can still be undone. Whatever ends the wait sends it, but for "Undo" itself.
const pending = new Map();
function defer(card, by, wait, go) {
	const what = one(".t", by), until = tickOf() + wait, text = make("span", { ariaHidden: true }), inside = card.contains(doc.activeElement);
	const show = () => { text.textContent = say("undoIn", { what: what.textContent.slice(0, 60), s: Math.ceil((until - tickOf()) / 1000) }); };
	const end = (act) => {
		clearInterval(shows);
		clearTimeout(sends);
		if (pending.delete(card)) act();
	};
	const takeBack = () => end(() => {
		shift(() => free(card));
		by.focus({ preventScroll: true });
		announce("undone", what);
	});
	const shows = setInterval(show, 250), flush = () => end(() => { shift(() => mark(card)); go(); }), sends = late(flush, wait);
	const undo = button("undo", takeBack);
	// Answered elsewhere by the same person: what waits is not sent.
	const drop = () => end(() => line(one(".box", byId(card.id)), say("overtaken", { what: what.textContent })));
	pending.set(card, { flush, takeBack, drop });
	show();
	shift(() => mark(card, text, undo));
	if (inside) undo.focus({ preventScroll: true });
	announce("undoSaid", what);
}
// What is under way is kept until the server has said something about it: a page that is closed meanwhile loses no answer.
const OUTBOX = "chips-outbox", going = new Set();
function hold(id, entry) {
	save(OUTBOX, { ...load(OUTBOX), [id]: entry });
}
// What another tab left, which may be gone by now: the same ids arrive once, whoever sends them. And what is typed there.
on("storage", ({ key }) => {
	if (key && person) {
		takeUp();
		all(".card form textarea").forEach(mirror);
		all(".card").forEach(dress);
	}
});
function takeUp() {
	Object.entries(load(OUTBOX)).forEach(([id, [whose, sent]]) => {
		// What another person left here is nobody's business.
		if (whose !== person) return hold(id);
		const card = byId(id) ?? make("article", { id }, make("div", { className: "box" })), data = params(sent);
		if (going.has(id) || isBusy(card)) return;
		lock(card, true);
		if (token) data.set("token", token);
		send(card, `/asks/${id}`, data, [], 0);
	});
}
const flushAll = () => pending.forEach(({ flush }) => flush());
async function send(card, url, data, unsent, tries) {
	const box = one(".box", card), { id } = card, keepalive = `${data}`.length < 60000;
	const slow = tries ? 0 : late(line, 700, box, say("sending"));
	going.add(id);
	let response, text;
	try {
		response = await fetch(url, { method: "POST", body: data, keepalive, headers: { "x-chips-piece": piece }, signal: AbortSignal.timeout(20000) });
		text = await response.text();
	} catch { response = null; }
	clearTimeout(slow);
	if (!response || response.status >= 500) {
		// The same ids go out again, so it arrives once however often it is sent.
		const again = (by) => {
			clearTimeout(timer);
			removeEventListener("online", again);
			by && line(box, say("sending"));
			send(card, url, data, unsent, tries + 1);
		};
		const timer = late(again, Math.min(1000 * 2 ** tries, 10000));
		on("online", again);
		return line(box, say(response ? "busy" : "unsent"), button("retry", again));
	}
	const page = parsed(text), fresh = one(".card", page);
	going.delete(id);
	free(card);
	if (response.status !== 401) hold(id);
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
// A text as it is kept. Whether it or an option is meant is said where it is typed, and not where it only comes back.
const mirror = (area) => { area.value = draft(cardOf(area), area.name) ?? ""; };
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
		q.classList.toggle("answered", !!one(":checked:not([value=text])", q) || !blank(one("textarea", q)?.value));
	});
	const n = all(".answered", form).length;
	if (!send.name) send.textContent = n && n < of.length ? say("sendSome", { n, all: of.length }) : say("send");
}
on("input", ({ target }) => {
	if (!target.matches("form textarea")) return;
	store(cardOf(target), [target.name], target.value);
	meant(target);
});
on("change", ({ target }) => {
	const q = target.closest(".q");
	if (!q) return;
	if (target.type === "checkbox" && target.checked) {
		all(":checked", q).forEach((other) => { if ((other.value === "none") !== (target.value === "none")) other.checked = false; });
	}
	if (target.value === "text") one("textarea", q).focus();
	count(target.form);
});

// Keys
on("keydown", (event) => {
	const { key, target } = event, card = cardOf(target), plain = !event.ctrlKey && !event.metaKey && !event.altKey;
	const stop = () => event.preventDefault();
	// Enter while composing ends a word.
	if (event.isComposing || event.keyCode === 229) return;
	if (target.matches("textarea, select, input:not([type=radio], [type=checkbox])")) {
		keyed = /Tab|Enter|Escape/.test(key) ? -2000 : tickOf();
		// On a touch screen Enter is a new line.
		if (key !== "Enter" || !target.matches("form textarea") || event.shiftKey || event.altKey || (plain && matchMedia("(pointer: coarse)").matches)) return;
		stop();
		if (!blank(target.value)) target.form.requestSubmit(one(".send", target.form));
		return;
	}
	// A key that is held down presses nothing a second time.
	if (event.repeat && (key === "Enter" || key > 0)) return stop();
	if (key === "Escape") [...pending.values()].at(-1)?.takeBack();
	if (!plain || !("keys" in body.dataset) || one("dialog[open]")) return;
	// Whoever types on although the field has gone, because its question was closed, means none of this.
	if (tickOf() - keyed < 2000) return keyed = tickOf();
	const cards = all(".card"), arrows = card && !target.matches("input") && { ArrowDown: 1, ArrowUp: -1 };
	const step = { j: 1, k: -1, ...arrows }[key];
	if (step) {
		const next = cards[card ? cards.indexOf(card) + step : 0];
		next?.focus();
		next?.scrollIntoView({ block: "nearest" });
	} else if (key === "?") one("#keys").showModal();
	else if (key > 0 && card && !stirs(card)) {
		const chip = all(".chip", target.closest(".q") ?? one(".q", card) ?? card)[key - 1], input = chip && one("input", chip);
		input?.focus();
		(input ?? chip)?.click();
	} else if (key === "Enter" && target === card) {
		const form = one("form.several", card);
		if (form) form.requestSubmit(one(":scope > .send", form)); else one("form.tap", card) || one(".when", card).click();
	} else return;
	stop();
});

// Live
const sift = location.search.replace("?", "&"), paged = /&before=/.test(sift), status = byId("status");
let source, log, seen = Number(byId("list")?.dataset.head), heard = 0, opened = 0, polled = 0, hidden = 0, asking, over, stale;
function ended() {
	if (over) return;
	over = true;
	source.close();
	if (typed(body).length) line(status, say("signedOut"), signIn()); else location.replace(signInPath());
}
const fetchCard = (id) => fetch(`/fragments/asks/${id}?view=${piece}${sift}`).catch(() => ({}));
const retries = new Map();
async function refresh(id) {
	const response = await fetchCard(id), card = byId(id);
	clearTimeout(retries.get(id));
	// What was told of it is known: nobody says it again.
	if (!(response.status < 500)) return over || retries.set(id, late(refresh, 3000, id));
	if (response.status === 401) ended();
	else if (isBusy(card)) return;
	else if (response.ok) place(one(".card", parsed(await response.text())));
	else if (response.status === 404 && card) {
		if (typed(card).length) mark(card, say("gone"));
		else shift(() => { card.remove(); totals(); });
	}
}
// Somebody was faster than the chance to undo: what was tapped is sent, and comes back as what it is.
async function overtaken(card) {
	const response = await fetchCard(card.id);
	const fresh = response.ok && one("[data-own]", parsed(await response.text())), waits = pending.get(card);
	if (fresh && waits) place(fresh);
	waits?.[fresh ? "drop" : "flush"]();
}
async function resync(force) {
	if (asking || over) return;
	asking = true;
	polled = tickOf();
	try {
		if (!list || paged) return all(".card").forEach((card) => refresh(card.id));
		const response = await fetch(`/fragments/list?head=${force ? "" : seen}${sift}`);
		if (response.status === 401) ended();
		if (!response.ok) return;
		line(status);
		clock(response.headers.get("x-chips-now"));
		if (response.status !== 204) take(one("#list", parsed(await response.text())));
	} catch { line(status, say("offline")); } finally { asking = false; }
}
// Takes a list in. It is as old as its head: what is known to have happened after that stands.
function take(fresh) {
	const head = Number(fresh.dataset.head), old = (card) => newest(card.id) <= head && !isBusy(byId(card.id));
	clock(fresh.dataset.now);
	byId("list").toggleAttribute("data-more", "more" in fresh.dataset);
	all("#list [data-state=open]").filter((card) => old(card) && !one(`#${card.id}`, fresh)).forEach((card) => refresh(card.id));
	all(".card", fresh).filter(old).reverse().forEach((card) => {
		const here = byId(card.id);
		if (!here || isOpen(here)) place(card);
	});
	if (head >= seen) {
		seen = head;
		behind(fresh);
		totals();
	}
}
function connect() {
	source?.close();
	opened = tickOf();
	heard = opened - 15000;
	let first = true;
	source = new EventSource(list ? `/live?after=${seen}` : "/live");
	const told = (name, act) => source.addEventListener(name, ({ data }) => { heard = tickOf(); act(JSON.parse(data)); });
	told("beat", (beat) => clock(beat.now));
	told("hello", (hello) => {
		const other = hello.resync || (log && log !== hello.log);
		clock(hello.now);
		line(status);
		if (other) { seen = 0; latest.clear(); }
		if (other || !first || !list) resync(true);
		first = false;
		log = hello.log;
	});
	told("ask", (event) => {
		const id = event.ask_id, card = byId(id);
		seen = Math.max(seen, event.seq);
		note(id, event.seq);
		// Perhaps it is one of those that are only counted here.
		stale ||= !card && beyond.some(Boolean);
		if (pending.has(card)) overtaken(card);
		else if (card ? !isBusy(card) : list && !paged) refresh(id);
	});
	source.onerror = () => { if (source.readyState === 2 || tickOf() - heard > 3000) resync(); };
}
// Where the stream says nothing (a proxy, a phone that slept), the list is asked for instead.
function watch() {
	const time = tickOf(), idle = time - polled;
	if (over) return;
	if (hidden && time - hidden > 300000) {
		// A page that nobody looks at gives its connection back: browsers allow few to one host.
		source.close();
		if (idle > 20000) resync();
	} else if (stale && idle > 3000) {
		stale = false;
		resync(true);
	} else if (time - heard > 20000) {
		if (idle > 1000) resync();
		if (time - opened > 30000) connect();
	}
}
function wake() {
	if (over) return;
	if (source.readyState === 2 || tickOf() - heard > 16000) connect();
	resync();
}

// A page in sight that is touched says so, at most every 30 s: what waits for a phone waits a little longer.
let touched = -3e4;
onkeydown = onpointermove = onpointerdown = () => {
	if (!token || doc.hidden || tickOf() - touched < 3e4) return;
	touched = tickOf();
	navigator.sendBeacon("/present", params({ token }));
};

// So does one that shows a question, once for each: a visible page is what makes it seen.
const shown = new Set();
function witness() {
	if (doc.hidden) return;
	const cards = all(".card.open").filter(({ id }) => {
		const { top, bottom } = byId(`p-${id}`).getBoundingClientRect();
		return !shown.has(id) && bottom > 60 && top < innerHeight - 60;
	});
	const data = params({ token }), ids = cards.map(({ id }) => id).slice(0, 50);
	ids.forEach((id) => data.append("ask", id));
	if (ids.length && navigator.sendBeacon("/seen", data)) ids.forEach((id) => shown.add(id));
}

let ticks = 0, ticked = Date.now();
function tick() {
	if (source && Math.abs(Date.now() - ticked - 1000) > 5000) wake();
	ticked = Date.now();
	all(ticks++ % 20 ? "time[data-t=until]" : "time[data-t]").forEach(tell);
	all("[data-deadline]").forEach(drain);
}
if (list || view === "ask") {
	all(".card").forEach((card) => { note(card.id, seq(card)); dress(card); });
	if (list) behind(byId("list"));
	totals();
	connect();
	setInterval(watch, 1000);
	setInterval(witness, 1000);
	on("visibilitychange", () => {
		hidden = doc.hidden && tickOf();
		if (hidden) flushAll(); else wake();
	});
	on("resume", wake, true);
	on("pagehide", flushAll);
	on("online", wake);
	on("offline", () => line(status, say("offline")));
}
tick();
setInterval(tick, 1000);
if (person) takeUp(); else if (view !== "offline") navigator.clearAppBadge?.().catch(() => {});
// The page that stands in where Chips can't be reached: what is kept, and back as soon as it can.
if (view === "offline") {
	const span = (className, text) => make("span", { className, textContent: text.slice(0, 200), dir: "auto" });
	const unsent = Object.values(load(OUTBOX)).map(([, , what, prompt]) => make("li", { className: "chip on" }, make("div", {}, span("d", prompt), span("t", what))));
	one(".chips").append(...unsent);
	one("[data-unsent]").hidden = !unsent.length;
	const back = () => fetch("/healthz").then(({ ok }) => { if (ok) location.reload(); }, () => {});
	setInterval(back, 3000);
	on("online", back);
}

// Messages of this browser's own: they begin with a tap, and until then nobody is asked for the permission.
const PUSH = "/settings/told/web-push", push = byId("push");
const subscription = async () => (await navigator.serviceWorker?.getRegistration())?.pushManager.getSubscription(), silence = async () => (await subscription())?.unsubscribe();
async function pushes() {
	if (!isSecureContext) return "insecure";
	if (!window.PushManager) return navigator.standalone === false ? "install" : "unsupported";
	if (Notification.permission === "denied") return "blocked";
	const here = await subscription();
	// The list offers no more than to renew.
	if (list && !here) return;
	const { address } = await (await fetch(PUSH)).json();
	return !here && !address ? "off" : here?.endpoint === address ? "on" : "gone";
}
async function offer() {
	const state = await pushes();
	all("[data-when]", push).forEach((it) => { it.hidden = it.dataset.when !== state; });
	push.hidden = list && state !== "gone";
}
async function subscribe() {
	try {
		if (await Notification.requestPermission() !== "granted") return offer();
		const { pushManager } = await navigator.serviceWorker.ready, { key } = await (await fetch(PUSH)).json();
		// One from before may be gone, or know the server by another key.
		await silence();
		const { endpoint, keys } = (await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })).toJSON();
		const response = await fetch(PUSH, { method: "POST", body: params({ token, endpoint, ...keys }) });
		if (!response.ok) throw Error(await response.text());
		location.reload();
	} catch ({ message }) { line(push, say("pushFailed", { what: message })); }
}
if (push) {
	all("[data-push]", push).forEach((by) => { by.onclick = () => by.dataset.push ? silence().then(offer) : subscribe(); });
	offer().catch(() => {});
}

// A worker that could not be fetched or installed is tried again, less and less often.
function install(wait) {
	const again = () => late(install, wait, 4 * wait);
	navigator.serviceWorker?.register(`/sw.js?${lang}`).then(({ installing: worker }) =>
		worker?.addEventListener("statechange", () => worker.state === "redundant" && again(), { once: true }), again);
}
install(2000);
// A page out of memory may be from before the sign-out.
on("pageshow", ({ persisted }) => { if (persisted) source ? wake() : location.reload(); });
