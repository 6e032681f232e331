// Shows a page of our own where Chips can't be reached. The server writes `cache`, `files` and `offline` above this.
// Nothing personal is kept: every page of a person comes from the server or not at all.
const on = (name, act) => addEventListener(name, (event) => event.waitUntil(act(event)));
on("install", async (event) => {
	skipWaiting();
	// An answer that outlives its page must not wait for this worker to wake.
	event.addRoutes?.([{ condition: { requestMethod: "POST" }, source: "network" }]).catch(() => {});
	await (await caches.open(cache)).addAll([...files, offline]);
});
on("activate", async () => {
	for (const name of await caches.keys()) if (name !== cache) await caches.delete(name);
	await clients.claim();
});
addEventListener("fetch", (event) => {
	const { request } = event, { pathname } = new URL(request.url);
	if (request.mode === "navigate" && request.method === "GET") event.respondWith(visit(request));
	else if (files.includes(pathname)) event.respondWith(caches.match(pathname).then((kept) => kept ?? fetch(request)));
});
async function visit(request) {
	const response = await fetch(request).catch(() => {}), status = response?.status;
	// Behind a proxy or a tunnel it is the proxy that says so: 502, 504, or a number of its own. 503 is Chips' own page.
	const away = !response || status === 502 || status > 503;
	return (away && await caches.match(offline)) || response || Response.error();
}

// Messages. The server says what is shown, as the Notifications API takes it. All that is said of one question has its tag, so
// each takes the place of the one before and never that of another question's.
const show = ({ title, ...options }) => registration.showNotification(title, { icon, dir: "auto", ...options });
const again = ({ title, body, tag, data, actions }, more) => show({ title, body, tag, data, actions, silent: true, ...more });
on("push", ({ data }) => told(data.json()));
// One that was overtaken on its way changes nothing, but browsers demand that something is shown. What is shown already can't be
// asked for: Chrome forgets a notification that is on its way to the screen when it is asked.
const latest = {};
function told(message) {
	const { tag, data } = message, newer = latest[tag];
	if (newer?.data.no > data.no) return again(newer);
	latest[tag] = message;
	return show(message);
}
// One tap after the other, so that the first is the one that counts.
let taps = Promise.resolve();
on("notificationclick", ({ action, notification }) => action ? (taps = taps.then(() => tap(action, notification))) : look(notification));
async function tap(action, notification) {
	const { data, body } = notification, { asked = body } = data;
	const response = await fetch(`/a/${data.taps[action]}`, { method: "POST", signal: AbortSignal.timeout(20000) }).catch(() => {});
	const text = response?.status < 500 && await response.text().catch(() => {});
	if (!text) return again(notification, { body: `${unsent}\n${asked}`, data: { ...data, asked }, requireInteraction: true });
	await again(notification, { body: text.trim(), actions: [] });
	// Nobody is signed in here any more, or the button is too old: the page of the question leads on.
	if (response.status === 410) await clients.openWindow(data.url);
}
async function look(notification) {
	const { url } = notification.data, { href } = new URL(url, location);
	notification.close();
	const there = (await clients.matchAll({ type: "window", includeUncontrolled: true })).find((client) => client.url === href);
	return there ? there.focus() : clients.openWindow(url);
}
// The push service gave this browser another address.
on("pushsubscriptionchange", async ({ newSubscription }) => {
	const path = "/settings/told/web-push", { key, token } = await (await fetch(path)).json();
	const fresh = newSubscription ?? await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
	const { endpoint, keys } = fresh.toJSON();
	await fetch(path, { method: "POST", body: new URLSearchParams({ token, endpoint, ...keys }) });
});
