package gateway

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/httprate"
)

// DefaultRate is a number of requests in a second that a program exceeds only by mistake.
const DefaultRate = 10_000

// rates limits the requests of each caller in a second. Its methods may be called from any
// goroutine. A nil value limits nothing.
type rates struct {
	limit   int
	limiter *httprate.RateLimiter
}

func newRates(limit int) *rates {
	if limit <= 0 {
		return nil
	}
	// Only a refusal has a header, because most requests are far from the limit.
	headers := httprate.WithResponseHeaders(httprate.ResponseHeaders{RetryAfter: "Retry-After"})
	return &rates{limit, httprate.NewRateLimiter(limit, time.Second, headers)}
}

// admit counts a request. It refuses the request of a caller who has sent too many. Root and
// the gateway's user may send any number on the socket, as they could end the gateway as well.
func (l *rates) admit(x *exchange) error {
	if l == nil || x.caller.All && x.caller.UID >= 0 {
		return nil
	}
	if !l.limiter.OnLimit(x, x.r, rateKey(x)) {
		return nil
	}
	return NewFault(http.StatusTooManyRequests, fmt.Sprintf(
		"%s sends more than %d requests in a second, the limit of this gateway (serve --rate): read several probes with one VALUE request, or their streams", x.caller.Name, l.limit))
}

// rateKey returns the key by which requests are counted: the name of the caller, or the address of a
// caller without identity.
func rateKey(x *exchange) string {
	if x.caller.Role > Nobody {
		return x.caller.Name
	}
	host, _, err := net.SplitHostPort(x.r.RemoteAddr)
	if err != nil {
		return x.r.RemoteAddr
	}
	return "address " + host
}
