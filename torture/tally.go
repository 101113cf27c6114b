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

// tally counts what was done to a victim. Each goroutine of a victim has its own.
type tally struct {
	rounds, compared         int64
	outlived                 int64 // comparisons with probes that outlived a gateway
	planted, turned, removed int64
	cleared                  int64
	otherTools               int64 // uprobes that another tool has set
	refused                  map[string]int64
}

// detail matches the parts in which refusals of the same kind differ.
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
	t.cleared += o.cleared
	t.otherTools += o.otherTools
	for why, n := range o.refused {
		if t.refused == nil {
			t.refused = make(map[string]int64)
		}
		t.refused[why] += n
	}
}

// outcome is the result of a victim.
type outcome struct {
	name string
	tally
	functions int
	err       error
	asked     []string // the last requests of the checker
}

// table prints the results.
func table(w io.Writer, all []*outcome, kills int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "program\tfunctions\trounds\tplanted\tturned\tremoved\tcounts compared\tafter a kill\tcleared\tother tool's\trefused\t")
	for _, o := range all {
		var refused int64
		for _, n := range o.refused {
			refused += n
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", o.name, o.functions, o.rounds, o.planted, o.turned, o.removed, o.compared, o.outlived, o.cleared, o.otherTools, refused)
	}
	t.Flush() // returns only errors of the writer
	fmt.Fprintf(w, "the gateway was killed %d times\n", kills)
	for _, o := range all {
		for _, why := range commonest(o.refused, 5) {
			fmt.Fprintf(w, "%s, refused %d times: %s\n", o.name, o.refused[why], why)
		}
	}
	for _, o := range all {
		if o.err != nil {
			fmt.Fprintf(w, "%s: FAILED: %v\nthe last requests of its checker:\n  %s\n", o.name, o.err, strings.Join(o.asked, "\n  "))
		}
	}
}

func commonest(n map[string]int64, most int) []string {
	all := slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	return all[:min(most, len(all))]
}
