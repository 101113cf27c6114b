package omis

import (
	"context"
	"time"
)

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

// Tool is a tool's connection to the monitor, with its scope, requests and replies (OMIS
// 5.5, 7.1). Several goroutines may use a Tool.
type Tool interface {
	// Request sends one request. Without a callback it blocks until the reply arrives,
	// which suits unconditional requests. With a callback, it passes every reply to the
	// callback, one call at a time and in order; but it returns the first one if flags
	// contains WaitForFirstReply. The error concerns the connection only; the reply
	// reports errors in the request.
	Request(ctx context.Context, request string, callback func(Reply), flags Flags) (Reply, error)

	// Explain returns what requests would do if they were enabled now, all together, and
	// executes none of them. They may name objects that do not exist yet, but would be made
	// by the requests in create: by tokens that are numbered from 1, by class. An error is
	// that of the first request that could not be executed.
	Explain(create []string, requests ...string) ([]Explanation, error)
	// State returns what a conditional request does.
	State(request Token) (Explanation, error)
	// Spent returns the total cost of observing by some conditional requests.
	Spent(requests []Token) (Spending, error)
	// Keep makes the measurements of an object's programs outlive the monitor under a
	// key, in all processes of the tool. The object adopts what an earlier monitor left
	// under that key, even from processes that have ended. If some of these measurements
	// were in the memory of a monitor that was killed, lost is the time at which the next
	// monitor found that out; otherwise it is zero.
	Keep(object Token, key string, ended ...ProcID) (lost time.Time, err error)

	// Finalize deletes the tool's requests and detaches from all its objects (OMIS
	// 7.1.4).
	Finalize() error
}
