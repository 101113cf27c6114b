package cli

import (
	"fmt"
	"io"
	"sync"
)

// printer writes what several goroutines have to say, each text as a whole, and
// puts the prompt behind it.
type printer struct {
	mu     sync.Mutex
	w      io.Writer
	prompt string
	open   bool // the prompt stands alone on the last line
}

func (p *printer) print(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prompt == "" {
		fmt.Fprint(p.w, text)
		return
	}
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	fmt.Fprint(p.w, text, p.prompt)
	p.open = true
}
