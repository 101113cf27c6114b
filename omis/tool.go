package omis

import "context"

// Flags of a request (OMIS 7.1.1).
type Flags uint

const (
	WaitForFirstReply Flags = 1 << iota
	DontReturnOK
	DontReturnEnDis
	BufferRequest
	BufferReplies
	Debug
)

// Tool is a tool's connection to the monitor: its scope, its requests and its
// replies (OMIS 5.5, 7.1). A Tool may be used by several goroutines.
type Tool interface {
	// Request sends one request. Without a callback it blocks until the reply
	// is there; that is meant for unconditional requests. With a callback,
	// every reply goes there, one call at a time and in order, except the
	// first one when flags has WaitForFirstReply: that one is returned. The
	// error speaks of the connection alone; what is wrong with the request
	// stands in the reply.
	Request(ctx context.Context, request string, callback func(Reply), flags Flags) (Reply, error)

	// Finalize deletes the tool's requests and detaches from all its objects
	// (OMIS 7.1.4).
	Finalize() error
}
