package engine

import (
	"sync"

	"mirador/omis"
)

// The most requests that a tool may have prepared: enough for a tool that polls ten thousand probes by one
// request, or many requests for a few each.
const (
	maxPrepared     = 2048
	longestPrepared = 512 << 10 // of all texts together
)

// prepared keeps the unconditional requests that a tool sent lately, ready for execution: tools that poll
// values send the same text each time. Executions only read them.
type prepared struct {
	mu     sync.Mutex
	byText map[string]ready
	length int // of all texts
}

// ready is a request that was parsed and checked.
type ready struct {
	request *omis.Request
	steps   []step
}

func (p *prepared) get(text string) (ready, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.byText[text]
	return r, ok
}

// put keeps a request. If there are too many, it forgets all others; they are prepared again when they are
// sent again.
func (p *prepared) put(text string, r ready) {
	if len(text) > longestPrepared {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byText == nil || len(p.byText) >= maxPrepared || p.length+len(text) > longestPrepared {
		p.byText, p.length = make(map[string]ready), 0
	}
	if _, known := p.byText[text]; !known {
		p.length += len(text)
	}
	p.byText[text] = r
}
