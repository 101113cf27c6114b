package cli

import (
	"fmt"
	"io"
	"sync"
)

// printer writes what several goroutines have to say, each text as a whole.
type printer struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *printer) print(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.w, text)
}
