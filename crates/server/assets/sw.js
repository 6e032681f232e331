// Shows a page of our own where Chips can't be reached. The server writes `cache`, `files` and `offline` above this.
// Nothing personal is kept: every page of a person comes from the server or not at all.
addEventListener("install", (event) => {
	skipWaiting();
	event.waitUntil(caches.open(cache).then((kept) => kept.addAll([...files, offline])));
});
addEventListener("activate", (event) => event.waitUntil((async () => {
	for (const name of await caches.keys()) if (name !== cache) await caches.delete(name);
	await clients.claim();
})()));
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
