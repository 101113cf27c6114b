package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// patienceBegins is how long a person waits without wondering.
const patienceBegins = time.Second

// patience shows on a terminal, from the first second on, what is being waited
// for and for how long; done takes it off the screen. Elsewhere it shows
// nothing.
func (g *globals) patience(what string) (done func()) {
	if !isTerminal(g.streams.Err) {
		return func() {}
	}
	ended, cleared := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(cleared)
		select {
		case <-ended:
		case <-time.After(patienceBegins):
			spin(g.streams, what, ended)
		}
	}()
	return func() {
		close(ended)
		<-cleared
	}
}

func spin(s Streams, what string, ended <-chan struct{}) {
	bar := progressbar.NewOptions(-1,
		progressbar.OptionSetWriter(s.Err), progressbar.OptionSetDescription(what),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish())
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			// Clearing a screen that has gone away is nobody's loss.
			_ = bar.Finish()
			return
		case <-tick.C:
			_ = bar.Add(1)
		}
	}
}
