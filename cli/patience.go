package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// patienceBegins is the waiting time after which a command shows what it waits for.
const patienceBegins = time.Second

// patience shows on a terminal, after patienceBegins, what the command waits for and for how long;
// done removes the message. If the output is not a terminal, patience shows nothing.
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
			// An error means that the terminal is gone, and with it the message.
			_ = bar.Finish()
			return
		case <-tick.C:
			_ = bar.Add(1)
		}
	}
}
