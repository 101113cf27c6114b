package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// conditions are what the kernel counts about a program, or about the machine, that explains why it
// was slow. A difference of two is what happened in between.
type conditions struct {
	ran         time.Duration // on the processor
	wait        time.Duration // in the run queue of the processor
	involuntary int           // switches to another thread
	migrations  int           // to another processor: a program may undo that it is bound to one
	steal       time.Duration // by the hypervisor, of all processors; many do not report it
	throttled   time.Duration // by the limit of the cgroup
}

// conditions reads the counters of the program, which must be stopped: those of a running thread lag
// behind.
func (p *player) conditions() (c conditions) {
	dirs, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", p.pid))
	if err != nil {
		return c
	}
	for _, dir := range dirs {
		// A thread that has ended has no more files.
		if text, err := os.ReadFile(filepath.Join(dir, "schedstat")); err == nil {
			fields := strings.Fields(string(text))
			c.ran, c.wait = c.ran+time.Duration(number(fields, 0)), c.wait+time.Duration(number(fields, 1))
		}
		if text, err := os.ReadFile(filepath.Join(dir, "status")); err == nil {
			c.involuntary += number(fieldsOf(string(text), "nonvoluntary_ctxt_switches:"), 1)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "sched")); err == nil {
			c.migrations += number(fieldsOf(string(text), "se.nr_migrations"), 2)
		}
	}
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		const steal, tick = 8, 10 * time.Millisecond
		c.steal = time.Duration(number(fieldsOf(string(text), "cpu "), steal)) * tick
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.pid)); err == nil {
		_, group, _ := strings.Cut(strings.TrimSpace(string(text)), "0::")
		if text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", group, "cpu.stat")); err == nil {
			c.throttled = time.Duration(number(fieldsOf(string(text), "throttled_usec "), 1)) * time.Microsecond
		}
	}
	return c
}

// fieldsOf returns the fields of the line that begins with a word.
func fieldsOf(text, word string) []string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, word) {
			return strings.Fields(line)
		}
	}
	return nil
}

// number returns a field as a number, 0 if it is not there.
func number(fields []string, i int) int {
	if i >= len(fields) {
		return 0
	}
	n, _ := strconv.Atoi(fields[i])
	return n
}

func (c conditions) since(before conditions) conditions {
	return conditions{c.ran - before.ran, c.wait - before.wait, c.involuntary - before.involuntary, c.migrations - before.migrations, c.steal - before.steal, c.throttled - before.throttled}
}

// mostWait is the part of a block that its program may have waited for the processor. The rule is
// fixed in advance, and is for averages of real times only: medians are not affected by waiting, and
// with a busy neighbour no block would be left (doc/decisions/gate.md).
const mostWait = 0.1

// spoils reports whether a block with this share of waiting must not be used for a limit.
func spoils(wait float64, l request.Limit) bool {
	return l.Of.Mean && l.Metric == "WC_TIME" && wait > mostWait
}

// weather is the conditions in all blocks together.
type weather struct {
	total   conditions
	waits   []float64 // the part of each block
	dropped int
}

// add returns the part of the time in which the program waited for the processor. While one of its threads
// runs the program does not wait, even if others do.
func (w *weather) add(c conditions, took time.Duration) (wait float64) {
	wait = float64(max(min(c.wait, took-c.ran), 0)) / float64(took)
	w.waits = append(w.waits, wait)
	w.total.involuntary += c.involuntary
	w.total.migrations += c.migrations
	w.total.steal += c.steal
	w.total.throttled += c.throttled
	return wait
}

// Weather describes the conditions in all blocks for the report, "" if no block was measured.
func (r *Runner) Weather() string {
	w := &r.weather
	if len(w.waits) == 0 {
		return ""
	}
	text := fmt.Sprintf("While the programs ran they waited for the processor %.1f %% of the time in the median of the blocks, %.0f %% at most; %d involuntary switches",
		100*verdict.Median(w.waits), 100*slices.Max(w.waits), w.total.involuntary)
	if w.total.migrations > 0 {
		text += fmt.Sprintf("; %d migrations to other processors", w.total.migrations)
	}
	if w.total.steal > 0 {
		text += fmt.Sprintf("; the hypervisor took %v", w.total.steal)
	}
	if w.total.throttled > 0 {
		text += fmt.Sprintf("; the cgroup's limit stopped them for %v", w.total.throttled.Round(time.Millisecond))
	}
	if w.dropped > 0 {
		text += fmt.Sprintf("; %d of %d blocks were dropped because they waited more than %.0f %%", w.dropped, len(w.waits), 100*mostWait)
	}
	return text + "."
}
