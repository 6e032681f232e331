// Written by `chips hook opencode --install`, and replaced by it: what is changed here is lost.
//
// Carries OpenCode's questions to Chips, where they can be answered from anywhere; they stay open here too, and the
// first answer wins. All of it is done by the command below, which is started at the first question: one line of JSON
// goes to it for each event about a question, one comes back for each reply. https://opencode.ai/docs/plugins/
import { spawn } from "node:child_process"

const COMMAND = ["chips", "hook", "opencode"]

const EVENTS = new Set(["question.asked", "question.replied", "question.rejected", "session.deleted"])
// One that can't be started is not started again for each event.
const REST_MS = 5000

export const Chips = async ({ client, directory }) => {
  let child
  let failed = 0

  const log = (level, message) =>
    void client.app.log({ body: { service: "chips", level, message } }).catch(() => {})

  const say = (to, what) => {
    if (to.stdin.writable) to.stdin.write(JSON.stringify(what) + "\n")
  }

  const reply = async (from, { id, dismiss, body }) => {
    let status = 0
    try {
      const url = dismiss ? "/question/{requestID}/reject" : "/question/{requestID}/reply"
      const headers = { "Content-Type": "application/json" }
      const result = await client._client.post({ url, path: { requestID: id }, body: body ?? {}, headers })
      status = result.response?.status ?? 0
    } catch (error) {
      log("warn", String(error))
    }
    say(from, { replied: id, status })
  }

  const lines = (stream, take) => {
    let rest = ""
    stream.setEncoding("utf8")
    stream.on("data", (piece) => {
      const parts = (rest + piece).split("\n")
      rest = parts.pop()
      parts.filter(Boolean).forEach(take)
    })
  }

  const start = () => {
    if (child || Date.now() - failed < REST_MS) return child
    const started = spawn(COMMAND[0], COMMAND.slice(1), { cwd: directory, stdio: ["pipe", "pipe", "pipe"] })
    const end = (why) => {
      if (child !== started) return
      child = undefined
      failed = Date.now()
      log("warn", `${COMMAND[0]} ${why}; questions stay in OpenCode`)
    }
    started.on("error", (error) => end(error.message))
    started.on("exit", (code, signal) => end(`ended (${signal ?? code})`))
    started.stdin.on("error", () => {})
    lines(started.stdout, (line) => {
      try {
        void reply(started, JSON.parse(line))
      } catch (error) {
        log("warn", String(error))
      }
    })
    lines(started.stderr, (line) => log("info", line))
    child = started
    return child
  }

  const forward = async (event) => {
    let title
    if (event.type === "question.asked") {
      const session = await client.session.get({ path: { id: event.properties.sessionID } }).catch(() => undefined)
      title = session?.data?.title
    } else if (!child) {
      return
    }
    const to = start()
    if (to) say(to, { event, directory, title })
  }

  // Events go on in the order in which they came, however long a title takes.
  let queue = Promise.resolve()
  return {
    // Nothing is waited for: OpenCode's events must not stand still.
    event: async ({ event }) => {
      if (EVENTS.has(event.type)) queue = queue.then(() => forward(event)).catch((error) => log("warn", String(error)))
    },
    // The end of its input tells the command that OpenCode is gone.
    dispose: async () => {
      const last = child
      child = undefined
      last?.stdin.end()
    },
  }
}
