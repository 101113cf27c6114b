package cli

import (
	"fmt"
	"io"
	"sync"
)

// printer serialises the output of several goroutines.
type printer struct {
	mu    sync.Mutex
	w     io.Writer
	plain bool // w is a terminal, or leads to one
}

func (p *printer) print(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plain {
		text = plain(text)
	}
	fmt.Fprint(p.w, text)
}
