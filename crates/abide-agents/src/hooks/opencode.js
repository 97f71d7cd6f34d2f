// Tells abide what OpenCode is doing and in which session. It must never disturb it: nothing is printed, nothing is waited for.
import { spawn } from "node:child_process"

const subagents = new Set()
let last = Promise.resolve()

function tell(event, session, message) {
  const call = () =>
    new Promise((done) => {
      const hook = spawn("{exe}", ["capsule", "report"], { stdio: ["pipe", "ignore", "ignore"] })
      hook.on("error", done)
      hook.on("close", done)
      hook.stdin.on("error", done)
      hook.stdin.end(JSON.stringify({ hook_event_name: event, session_id: session, message }))
    })
  last = last.then(call, call)
}

export const Abide = async () => ({
  event: async ({ event }) => {
    const { type, properties = {} } = event
    const session = properties.sessionID ?? properties.info?.id
    if (/^session\.(created|updated)$/.test(type) && properties.info?.parentID) subagents.add(session)
    if (subagents.has(session)) return
    if (type === "session.status") tell(properties.status?.type === "idle" ? "idle" : "busy", session)
    else if (type === "session.idle") tell("idle", session)
    else if (type === "permission.asked")
      tell("permission", session, [properties.permission, ...(properties.patterns ?? [])].filter(Boolean).join(" "))
    else if (type === "question.asked") tell("question", session, properties.questions?.[0]?.question)
    else if (/^(permission|question)\.(replied|rejected)$/.test(type)) tell("busy", session)
  },
})
