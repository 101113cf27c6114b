package session

import (
	"fmt"
	"io"
	"sync"
)

// printer serialises the output of several goroutines.
type printer struct {
	mu    sync.Mutex
	w     io.Writer
	plain func(string) string // nil: text is printed as it is
}

func (p *printer) print(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plain != nil {
		text = p.plain(text)
	}
	fmt.Fprint(p.w, text)
}
