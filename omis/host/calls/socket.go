package calls

import "strings"

// onSocket stands behind the name of a system call that is meant only where its first argument
// is the descriptor of a socket, as in write@socket.
const onSocket = "@socket"

// Split parts the name of a system call, as an event names it, from the condition that its
// first argument is the descriptor of a socket.
func Split(name string) (call string, socket bool) { return strings.CutSuffix(name, onSocket) }
