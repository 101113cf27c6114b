package calls

import "strings"

// onSocket follows the name of a system call in an event if only calls on sockets count,
// as in write@socket: the first argument is the descriptor of a socket.
const onSocket = "@socket"

// Split separates the name of a system call in an event from the condition that its first
// argument is the descriptor of a socket.
func Split(name string) (call string, socket bool) { return strings.CutSuffix(name, onSocket) }
