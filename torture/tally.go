//go:build linux && amd64

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// tally is what was done to a victim. Its judge and its tormentor have one each.
type tally struct {
	rounds, compared         int64
	outlived                 int64 // comparisons with probes that have outlived a gateway
	planted, turned, removed int64
	relented                 int64
	neighbours               int64 // uprobes of another tool
	refused                  map[string]int64
}

// detail is what makes one refusal differ from the next of its kind.
var detail = regexp.MustCompile(`0x[0-9a-f]+|\b(p|t|c|pa_[a-z])_[0-9]+|[0-9]{3,}`)

func (t *tally) refuse(why string) {
	if t.refused == nil {
		t.refused = make(map[string]int64)
	}
	t.refused[detail.ReplaceAllString(why, "…")]++
}

func (t *tally) add(o *tally) {
	t.rounds += o.rounds
	t.compared += o.compared
	t.outlived += o.outlived
	t.planted += o.planted
	t.turned += o.turned
	t.removed += o.removed
	t.relented += o.relented
	t.neighbours += o.neighbours
	for why, n := range o.refused {
		if t.refused == nil {
			t.refused = make(map[string]int64)
		}
		t.refused[why] += n
	}
}

// outcome is what became of a victim.
type outcome struct {
	name string
	tally
	functions int
	err       error
	asked     []string // by the judge, last
}

// table prints what was done and what came of it.
func table(w io.Writer, all []*outcome, kills int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "program\tfunctions\trounds\tplanted\tturned\tremoved\tcounts compared\tafter a kill\trelented\tother tool's\trefused\t")
	for _, o := range all {
		var refused int64
		for _, n := range o.refused {
			refused += n
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", o.name, o.functions, o.rounds, o.planted, o.turned, o.removed, o.compared, o.outlived, o.relented, o.neighbours, refused)
	}
	t.Flush() // an error is the writer's
	fmt.Fprintf(w, "the gateway was killed %d times\n", kills)
	for _, o := range all {
		for _, why := range commonest(o.refused, 5) {
			fmt.Fprintf(w, "%s, refused %d times: %s\n", o.name, o.refused[why], why)
		}
	}
	for _, o := range all {
		if o.err != nil {
			fmt.Fprintf(w, "%s: FAILED: %v\nits judge has asked:\n  %s\n", o.name, o.err, strings.Join(o.asked, "\n  "))
		}
	}
}

func commonest(n map[string]int64, most int) []string {
	all := slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	return all[:min(most, len(all))]
}
