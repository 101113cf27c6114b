//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// scraper requests the gateway's metrics repeatedly, and reads its memory usage.
type scraper struct {
	cancel context.CancelFunc
	done   chan struct{}

	// The goroutine that scrapes owns these fields until done is closed.
	took   []time.Duration
	memory int // maximum in MB
	err    error
}

// scrape starts a scraper, as root.
func (s *siege) scrape(ctx context.Context) *scraper {
	ctx, cancel := context.WithCancel(ctx)
	r := &scraper{cancel: cancel, done: make(chan struct{})}
	c := s.gateway.caller(0)
	go func() {
		defer close(r.done)
		for r.err == nil && ctx.Err() == nil {
			r.err = r.once(ctx, c, s.gateway)
		}
	}()
	return r
}

func (r *scraper) once(ctx context.Context, c *caller, g *gateway) error {
	const pause = 20 * time.Millisecond
	a, err := c.send(ctx, http.MethodGet, "/metrics", "", nil)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil || a.status != http.StatusOK || !strings.Contains(a.body, "mirador_probes ") {
		return fmt.Errorf("GET /metrics: status %d, %v", a.status, err)
	}
	r.took = append(r.took, a.took)
	mb, err := g.resident()
	r.memory = max(r.memory, mb)
	time.Sleep(pause)
	return err
}

// end stops the scraper and checks its results.
func (r *scraper) end(progress io.Writer) error {
	r.cancel()
	<-r.done
	if r.err != nil {
		return r.err
	}
	if len(r.took) == 0 {
		return errors.New("GET /metrics was not answered once")
	}
	slices.Sort(r.took)
	slowest := r.took[len(r.took)-1]
	fmt.Fprintf(progress, "GET /metrics was answered %d times meanwhile: median %v, 99th percentile %v, slowest %v; the gateway had at most %d MB\n",
		len(r.took), r.took[len(r.took)/2].Round(time.Microsecond), r.took[len(r.took)*99/100].Round(time.Microsecond), slowest.Round(time.Microsecond), r.memory)
	if slowest > slowestScrape {
		return fmt.Errorf("GET /metrics took %v", slowest)
	}
	if r.memory > mostMemory {
		return fmt.Errorf("the gateway had %d MB", r.memory)
	}
	return nil
}
