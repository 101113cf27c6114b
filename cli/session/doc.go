// Package session sends OMIS requests that a person types or a script pipes in, and prints the replies, also those
// to conditional requests as they arrive. At a terminal a person edits lines, recalls lines of earlier sessions,
// and completes names.
//
// Only cli imports it. Of ours it imports http, mir/client, omis, omis/service and omis/syntax. One goroutine reads
// and sends requests, another one prints the stream of replies; the printer and the names serve both.
package session
