//go:build linux && amd64

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// nobody is a user without privileges on any Linux.
const nobody = 65534

// These limits apply to the gateway even on a busy machine.
const (
	slowestScrape = 5 * time.Second
	mostMemory    = 1500 // MB
)

var probeID = regexp.MustCompile(`<probe id="([^"]+)"`)

// crowd is the phase with one user, many probes and many requests.
type crowd struct {
	caller *caller
	target *target
	ids    []string
	sent   atomic.Int64
}

const crowdApp = "crowd"

// crowd runs the phase, and scrapes the metrics meanwhile.
func (s *siege) crowd(ctx context.Context) error {
	t, err := startTarget(s.program, nobody)
	if err != nil {
		return err
	}
	defer t.Kill()
	c := &crowd{caller: s.gateway.caller(nobody), target: t}
	if err := c.caller.attach(ctx, crowdApp, t.PID); err != nil {
		return err
	}
	scraper := s.scrape(ctx)
	err = c.run(ctx, s)
	if failed := scraper.end(s.progress); err == nil {
		err = failed
	}
	return err
}

func (c *crowd) run(ctx context.Context, s *siege) error {
	begin := time.Now()
	if err := c.plant(ctx, s.probes); err != nil {
		return err
	}
	s.say("%d probes of a user were set in %v", len(c.ids), time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	if err := c.besiege(ctx, s); err != nil {
		return err
	}
	took := time.Since(begin)
	s.say("%d requests were answered in %v, %.0f a second", c.sent.Load(), took.Round(time.Millisecond), float64(c.sent.Load())/took.Seconds())
	if err := c.count(ctx); err != nil {
		return err
	}
	begin = time.Now()
	if err := c.each(ctx, "REMOVE"); err != nil {
		return err
	}
	s.say("%d probes were removed in %v", len(c.ids), time.Since(begin).Round(time.Millisecond))
	if _, err := c.caller.must(ctx, http.MethodDelete, "/apps/"+crowdApp, "", ""); err != nil {
		return err
	}
	return c.target.unharmed()
}

// plant sets a probe on each of the first functions. The last request plants all of them.
func (c *crowd) plant(ctx context.Context, probes int) error {
	for i := range probes {
		reply, err := c.caller.document(ctx, crowdApp,
			`<instrreq activated="true" flush="%t"><codeRegion from="target:f_%d"/><metric name="COUNT"/></instrreq>`, i == probes-1, i%functions)
		if err != nil {
			return err
		}
		id := probeID.FindStringSubmatch(reply)
		if id == nil {
			return fmt.Errorf("there is no id in %s", reply)
		}
		c.ids = append(c.ids, id[1])
	}
	return nil
}

// besiege sends requests about the probes concurrently while the program runs.
func (c *crowd) besiege(ctx context.Context, s *siege) error {
	if _, err := c.target.tell("go"); err != nil {
		return err
	}
	var callers sync.WaitGroup
	errs := make(chan error, s.parallel)
	for n := range s.parallel {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(s.seed, uint64(n)))
			for c.sent.Add(1) <= int64(s.requests) {
				if err := c.ask(ctx, r); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	callers.Wait()
	c.sent.Store(int64(s.requests))
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	_, err := c.target.tell("stop")
	return err
}

// ask sends one request, of a kind that users send.
func (c *crowd) ask(ctx context.Context, r *rand.Rand) error {
	id := c.ids[r.IntN(len(c.ids))]
	control := func(action string) error {
		_, err := c.caller.document(ctx, crowdApp, `<ctrlreq action="%s"><probe id="%s"/></ctrlreq>`, action, id)
		return err
	}
	get := func(path string) error {
		_, err := c.caller.must(ctx, http.MethodGet, path, "", "")
		return err
	}
	switch n := r.IntN(100); {
	case n < 50:
		return control("VALUE")
	case n < 55:
		return control("DEACTIVATE")
	case n < 65:
		return control("ACTIVATE")
	case n < 80:
		return get("/probes/" + id)
	case n < 90:
		return get("/apps/" + crowdApp)
	}
	_, err := c.caller.document(ctx, crowdApp, `<snapshotreq named="true"/>`)
	return err
}

// count makes the program call each function, and compares each probe's value.
func (c *crowd) count(ctx context.Context) error {
	const times = 3
	for _, action := range []string{"ACTIVATE", "RESET"} {
		if err := c.each(ctx, action); err != nil {
			return err
		}
	}
	if _, err := c.target.tell(fmt.Sprintf("call %d", times)); err != nil {
		return err
	}
	want := regexp.MustCompile(fmt.Sprintf(`value="%d"`, times))
	for _, id := range c.ids {
		reply, err := c.caller.document(ctx, crowdApp, `<ctrlreq action="VALUE"><probe id="%s"/></ctrlreq>`, id)
		if err != nil {
			return err
		}
		if !want.MatchString(reply) {
			return fmt.Errorf("each function was called %d times, and the value of %s is %s", times, id, reply)
		}
	}
	return nil
}

// each sends a control request about all probes, some hundred in each document.
func (c *crowd) each(ctx context.Context, action string) error {
	const most = 500
	for i := 0; i < len(c.ids); i += most {
		list := ""
		for _, id := range c.ids[i:min(i+most, len(c.ids))] {
			list += `<probe id="` + id + `"/>`
		}
		if _, err := c.caller.document(ctx, crowdApp, `<ctrlreq action="%s">%s</ctrlreq>`, action, list); err != nil {
			return err
		}
	}
	return nil
}
