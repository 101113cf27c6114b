package probes

import (
	"strings"
	"testing"
	"time"
)

// TestMissedIsSaid checks that the notice of a probe says that its requests may have missed events, until
// its values are discarded.
func TestMissedIsSaid(t *testing.T) {
	at := time.Date(2026, 11, 26, 1, 2, 3, 0, time.UTC)
	w := &installed{}
	for _, c := range []struct {
		missed, begun time.Time
		notice        string
		want          []string
	}{
		{want: []string{""}},
		{missed: at, want: []string{"something may be missing: at " + at.Local().Format(time.RFC3339)}},
		{missed: at, notice: "first", want: []string{"first; something may be missing"}},
		{missed: at, begun: at.Add(time.Second), notice: "first", want: []string{"first"}},
	} {
		w.missed.Store(nanoseconds(c.missed))
		w.begun.Store(nanoseconds(c.begun))
		got := w.complete(c.notice)
		for _, part := range c.want {
			if !strings.HasPrefix(got, part) || part == "" && got != "" || part == "first" && got != part {
				t.Errorf("the notice is %q, want %q", got, part)
			}
		}
	}
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
