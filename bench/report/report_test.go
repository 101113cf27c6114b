package report

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		rounds []float64
		want   Stat
	}{
		{nil, Stat{}},
		{[]float64{7}, Stat{7, 7}},
		{[]float64{9, 1, 5}, Stat{1, 5}},
		{[]float64{4, 2}, Stat{2, 4}},
	} {
		if got := Summary(c.rounds); got != c.want {
			t.Errorf("the summary of %v is %v, not %v", c.rounds, got, c.want)
		}
	}
}

// TestAdded checks that a round in which the bare call was disturbed does not make the
// probe look cheap.
func TestAdded(t *testing.T) {
	got := Added([]float64{52, 50, 51}, []float64{46, 49, 46})
	if want := (Stat{4, 5}); got != want {
		t.Errorf("%v were added, not %v", got, want)
	}
	if got := Added([]float64{1}, nil); got != (Stat{}) {
		t.Errorf("without figures, %v is added", got)
	}
}

func TestGoals(t *testing.T) {
	of := func(least, median float64) *Stat { return &Stat{least, median} }
	for _, c := range []struct {
		name      string
		goal      Goal
		ours      Stat
		reference *Stat
		why       string
		want      Verdict
		text      string
	}{
		{"none", Goal{}, Stat{1, 1}, of(1, 1), "", NoGoal, ""},
		{"at most, met", AtMost(2.5), Stat{1.8, 2.5}, nil, "", Holds, "at most 2.5ns"},
		{"at most, by the least", AtMost(2.5), Stat{1.8, 2.6}, nil, "", AtBest, "at most 2.5ns"},
		{"at most, missed", AtMost(2.5), Stat{2.6, 2.7}, nil, "", Fails, "at most 2.5ns"},
		{"within, met", Within(1.1), Stat{109, 110}, of(100, 100), "", Holds, "at most 1.1 times"},
		{"within, missed", Within(1.1), Stat{111, 120}, of(100, 100), "", Fails, "at most 1.1 times"},
		{"cheaper, met", Cheaper(200), Stat{1.8, 2}, of(694, 700), "", Holds, "200 times as fast"},
		{"cheaper, missed", Cheaper(200), Stat{4, 4}, of(694, 700), "", Fails, "200 times as fast"},
		{"cheaper than free", Cheaper(200), Stat{-0.2, 0}, of(694, 700), "", Holds, "200 times as fast"},
		{"near, met", Near(0.05), Stat{44, 48}, of(46, 46), "", Holds, "within 5 %"},
		{"near, missed below", Near(0.05), Stat{36, 36}, of(46, 46), "", Fails, "within 5 %"},
		{"near, missed above", Near(0.05), Stat{56, 56}, of(46, 46), "", Fails, "within 5 %"},
		{"beside", Beside(), Stat{5, 5}, of(1, 1), "", NoGoal, ""},
		{"no reference", Cheaper(2), Stat{1, 1}, nil, "", Unknown, "2 times as fast"},
		{"no figure", AtMost(1), Stat{}, nil, "it is not installed", Unknown, "at most 1.0ns"},
		{"no figure, no goal", Goal{}, Stat{}, nil, "it is not installed", NoGoal, ""},
	} {
		r := Row{Unit: Nanoseconds, Ours: c.ours, Reference: c.reference, Goal: c.goal, Why: c.why}
		if got := c.goal.judge(r); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
		if got := c.goal.text(Nanoseconds); got != c.text {
			t.Errorf("%s: the text is %q, not %q", c.name, got, c.text)
		}
	}
}

func TestRatios(t *testing.T) {
	row := Row{Unit: Nanoseconds, Ours: Stat{2, 4}, Reference: &Stat{100, 100}, Goal: Cheaper(10)}
	if least, median := row.Ratios(); least != 50 || median != 25 {
		t.Errorf("the figures are %v and %v times as fast", least, median)
	}
	row.Goal = Within(1)
	if least, median := row.Ratios(); least != 0.02 || median != 0.04 {
		t.Errorf("the figures are %v and %v times the reference", least, median)
	}
	row.Goal = Beside()
	if least, _ := row.Ratios(); least != 50 {
		t.Errorf("the ratio without a goal is %v", least)
	}
	row.Goal, row.Ours = Cheaper(10), Stat{0.01, 4}
	if least, _ := row.Ratios(); !math.IsNaN(least) {
		t.Errorf("the ratio of a cost of zero is %v", least)
	}
}

func sample() *Table {
	t := &Table{Name: "sample", Title: "A sample"}
	t.Add(Row{What: "inline, LB", Unit: Nanoseconds, Ours: Stat{0.01, 0.4}, Than: "bpftrace", Reference: &Stat{694, 1234567}, Goal: Cheaper(200)})
	t.Add(Row{What: "kernel, LB", Unit: Nanoseconds, Ours: Stat{650, 660}, Than: "uftrace", Why: "uftrace is not installed"})
	t.Add(Row{What: "inline, TB", Unit: Nanoseconds, Than: "uftrace", Goal: Cheaper(4), Why: "uftrace is not installed"})
	t.Note("Of %d rounds", 3)
	t.Note("Of %d rounds", 3)
	return t
}

func TestPrint(t *testing.T) {
	var b strings.Builder
	sample().Print(&b)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 7 {
		t.Fatalf("the table has %d lines:\n%s", len(lines), &b)
	}
	for i, want := range map[int][]string{
		0: {"A sample"},
		1: {"measured", "holds"},
		2: {"inline, LB", "0.0ns", "0.4ns", "694ns", "1.235ms", "–", "3.09e+06", "200 times as fast", "yes"},
		3: {"kernel, LB", "650ns", "660ns"},
		4: {"inline, TB", "–", "unknown"},
		5: {"Of 3 rounds"},
		6: {"No figure for kernel, LB, beside uftrace; inline, TB: uftrace is not installed."},
	} {
		for _, text := range want {
			if !strings.Contains(lines[i], text) {
				t.Errorf("line %d has no %q: %s", i, text, lines[i])
			}
		}
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	d := Document{Begun: time.Unix(1e9, 0).UTC(), Machine: Machine{Processor: "a processor", CPUs: 2}, Tables: []*Table{sample()}}
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Begun    string
		Machine  struct{ CPUs int }
		Sections []struct {
			Name string
			Rows []struct {
				Measured, Holds, Why string
				Ours, Ratio          *Stat
			}
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v in %s", err, &b)
	}
	if got.Begun != "2001-09-09T01:46:40Z" || got.Machine.CPUs != 2 || len(got.Sections) != 1 || len(got.Sections[0].Rows) != 3 {
		t.Fatalf("the document is %s", &b)
	}
	rows := got.Sections[0].Rows
	if rows[0].Holds != "yes" || *rows[0].Ours != (Stat{0.01, 0.4}) || rows[0].Ratio != nil {
		t.Errorf("the first row is %+v", rows[0])
	}
	if rows[1].Ours == nil || rows[2].Ours != nil || rows[2].Why == "" {
		t.Errorf("the rows without references are %+v, %+v", rows[1], rows[2])
	}
}

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{
		"-0.3ns": Nanoseconds.Format(-0.3), "99.9ns": Nanoseconds.Format(99.94), "4.123µs": Nanoseconds.Format(4123.4), "12.35ms": Nanoseconds.Format(12_345_678),
		"1.05": Number.Format(1.0512), "–": Nanoseconds.Format(math.NaN()),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestThisMachine(t *testing.T) {
	m, err := ThisMachine()
	if err != nil || m.CPUs < 1 || m.Kernel == "" || m.Processor == "" || !strings.Contains(m.String(), m.Kernel) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestProgressIsSilentInFiles(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	NewProgress(file).Say("round %d", 1)
	(*Progress)(nil).Say("nothing")
	if info, err := file.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%d bytes were written, %v", info.Size(), err)
	}
}
