//go:build linux && amd64

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// attack is a phase with mutated texts.
type attack struct {
	what    string
	count   int
	seeds   []string
	grammar *grammar // of texts besides the seeds; nil if there is none
	words   []string
	// begin prepares for the texts of goroutine n; nil if nothing needs to be prepared.
	begin func(ctx context.Context, c *caller, n int) error
	// send sends a text for goroutine n.
	send func(ctx context.Context, c *caller, n int, text string) (answer, error)
	// end releases what goroutine n holds at the end; nil if tidy does.
	end func(ctx context.Context, c *caller, n int) error
	// tidy removes, from time to time, what correct texts have created.
	tidy func(ctx context.Context, c *caller, n int) error
}

// tidyAfter is the number of texts that a goroutine sends before it calls tidy.
const tidyAfter = 500

// documents are MIR documents about the applications, most of them correct.
var documents = []string{
	`<snapshotreq named="true" stack="8"/>`,
	`<snapshotreq stack="3"/>`,
	`<sirreq><resource in="file:///etc/passwd" out="file:///tmp/x"/></sirreq>`,
	`<instrreq activated="true" flush="true"><codeRegion from="target:f_1"/><metric name="COUNT"/></instrreq>`,
	`<instrreq activated="true" flush="true"><codeRegion from="target:f_1"/><metric name="COUNT"/><process id="*"/></instrreq>`,
	`<instrreq activated="true" flush="false"><codeRegion from="target:f_2" to="target:f_2"/><metric name="WC_TIME"/><process id="*"><thread id="?"/></process></instrreq>`,
	`<instrreq activated="true" flush="true"><codeRegion from="target:f_42"/><metric name="WC_TIME"/><metric name="COUNT"/><measuring delivery="1000"><aggregate function="MAXIMUM"/><aggregate function="VARIANCE"/></measuring><process id="?"><thread id="*"/></process></instrreq>`,
	`<instrreq activated="false" flush="true"><metric name="THREAD_COUNT"/><measuring interval="100" delivery="500"/><node id="?"><process id="*"/></node></instrreq>`,
	`<instrreq activated="true" flush="true"><metric name="SYSCALL_COUNT"/><process id="*"/></instrreq>`,
	`<instrreq activated="true" flush="true"><metric name="CPU_TIME"/><measuring interval="10"><aggregate function="AVERAGE"/></measuring><thread id="*"/></instrreq>`,
	`<instrreq xmlns:g="urn:mirador:gateway" g:budget="2%" activated="true"><codeRegion from="target:main"/><metric name="CPU_TIME"/></instrreq>`,
	`<ctrlreq action="VALUE"><probe id="PROBE"/></ctrlreq>`,
	`<ctrlreq flush="1"><probe id="PROBE"/><probe id="PROBE"/><action type="RESET"/></ctrlreq>`,
	`<ctrlreq action="DEACTIVATE"><probe id="PROBE"/></ctrlreq>`,
	`<ctrlreq action="ACTIVATE" flush="true"><probe id="PROBE"/><metric name="COUNT"/><measuring delivery="4000"/><process id="*"/></ctrlreq>`,
	`<ctrlreq action="REMOVE"><probe id="PROBE"/></ctrlreq>`,
	`<?xml version="1.0" encoding="ISO-8859-1"?><!-- x --><snapshotreq xmlns="urn:apart:mir:1" named="1"/>`,
	`<measurement probeId="a"><measurement processId="p_1" value="3"/></measurement>`,
}

// latest is replaced by the id of the newest probe, folder by the directory of gateway.files.
const (
	latest = "PROBE"
	folder = "FOLDER"
)

var documentWords = []string{
	"snapshotreq", "snapshotrequest", "sirreq", "instrreq", "ctrlreq", "resource", "codeRegion", "metric", "event", "measuring", "aggregate",
	"site", "node", "communicator", "process", "thread", "probe", "action", "id", "from", "to", "name", "interval", "duration", "delivery",
	"destination", "function", "activated", "flush", "named", "stack", "VALUE", "RESET", "ACTIVATE", "DEACTIVATE", "REMOVE", "REDEFINE",
	"COUNT", "WC_TIME", "CPU_TIME", "BLOCKED_COUNT", "NET_SEND", "NET_RECV", "PAGE_FAULTS", "MAXIMUM", "MINIMUM", "AVERAGE", "SUM", "VARIANCE",
	latest, "*", "?", "true", "false", "p_1", "t_1", "n_1", "target:f_3", "target:main", "target:*", "file:///dev/zero", "file:///etc/shadow", "&#0;", "&lt;", "]]>", "<!--", "<![CDATA[", "é",
}

// malformed sends mutated documents to applications.
func (s *siege) malformed(ctx context.Context) error {
	g, err := readGrammar(documentWords)
	if err != nil {
		return err
	}
	a := attack{what: "MIR documents", count: s.documents, seeds: documents, grammar: g, words: documentWords}
	var last [targets]atomic.Pointer[string]
	for i := range last {
		last[i].Store(new(string))
	}
	a.send = func(ctx context.Context, c *caller, n int, text string) (answer, error) {
		id := &last[n%targets]
		text = strings.NewReplacer(latest, *id.Load(), folder, s.gateway.files).Replace(text)
		got, err := c.send(ctx, http.MethodPost, "/apps/"+s.appOf(n)+"/mir", "application/xml", []byte(text))
		if made := probeID.FindStringSubmatch(got.body); made != nil && got.status == http.StatusOK {
			id.Store(&made[1])
		}
		return got, err
	}
	a.tidy = func(ctx context.Context, c *caller, n int) error {
		list, err := c.must(ctx, http.MethodGet, "/probes", "", "")
		if err != nil {
			return err
		}
		// Refusals are ignored: the list includes probes of other applications, and other goroutines
		// remove probes too.
		for _, id := range listedProbe.FindAllStringSubmatch(list, -1) {
			if _, err := c.send(ctx, http.MethodPost, "/apps/"+s.appOf(n)+"/mir", "application/xml",
				fmt.Appendf(nil, `<ctrlreq action="REMOVE"><probe id="%s"/></ctrlreq>`, id[1])); err != nil {
				return err
			}
		}
		return nil
	}
	return s.attack(ctx, a)
}

// targets is the number of programs that are attached during an attack.
const targets = 2

func (s *siege) appOf(n int) string { return fmt.Sprint("app-", n%targets) }

// attack sends mutated texts concurrently, and checks the gateway and the targets.
func (s *siege) attack(ctx context.Context, a attack) error {
	root := s.gateway.caller(0)
	var all [targets]*target
	for i := range all {
		t, err := startTarget(s.program, 0)
		if err != nil {
			return err
		}
		defer t.Kill()
		if _, err := t.tell("go"); err != nil {
			return err
		}
		if err := root.attach(ctx, s.appOf(i), t.PID); err != nil {
			return err
		}
		all[i] = t
		s.pids[i] = t.PID
	}
	scraper := s.scrape(ctx)
	err := s.rain(ctx, a)
	if failed := scraper.end(s.progress); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	for i, t := range all {
		if _, err := root.must(ctx, http.MethodDelete, "/apps/"+s.appOf(i), "", ""); err != nil {
			return err
		}
		if err := t.unharmed(); err != nil {
			return err
		}
	}
	return nil
}

// rain sends the texts of an attack.
func (s *siege) rain(ctx context.Context, a attack) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sent atomic.Int64
	var classes [6]atomic.Int64
	var callers sync.WaitGroup
	begin := time.Now()
	for n := range s.parallel {
		callers.Go(func() {
			c := s.gateway.caller(0)
			m := &mutator{rand.New(rand.NewPCG(s.seed, uint64(n))), a.seeds, a.grammar, a.words}
			if a.begin != nil {
				if err := a.begin(ctx, c, n); err != nil {
					cancel(err)
					return
				}
			}
			for i := 1; sent.Add(1) <= int64(a.count) && ctx.Err() == nil; i++ {
				class, err := a.once(ctx, c, n, m.next())
				if err == nil && i%tidyAfter == 0 {
					err = a.tidy(ctx, c, n)
				}
				if err != nil {
					cancel(err)
					return
				}
				classes[class].Add(1)
			}
			end := a.end
			if end == nil {
				end = a.tidy
			}
			if err := end(ctx, c, n); err != nil {
				cancel(err)
			}
		})
	}
	callers.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	took := time.Since(begin)
	s.say("%d mutated %s in %v, %.0f a second: %d were answered 2xx, %d 4xx, %d 503", a.count, a.what, took.Round(time.Millisecond),
		float64(a.count)/took.Seconds(), classes[2].Load(), classes[4].Load(), classes[5].Load())
	return nil
}

// once sends a text and returns the class of its status. The only permitted status of class 5 is
// 503, for what the gateway cannot do at present.
func (a *attack) once(ctx context.Context, c *caller, n int, text string) (class int, err error) {
	got, err := a.send(ctx, c, n, text)
	if err != nil {
		return 0, fmt.Errorf("%w, after %q", err, text)
	}
	if got.status >= http.StatusInternalServerError && got.status != http.StatusServiceUnavailable {
		return 0, fmt.Errorf("status %d: %.500s\nafter %q", got.status, got.body, text)
	}
	return got.status / 100, nil
}

// harmless reports whether a text contains no word of a list.
func harmless(text string, without []string) bool {
	return !slices.ContainsFunc(without, func(name string) bool { return strings.Contains(text, name) })
}
