package measure

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// observed is the time for which processors are observed before a start: ten ticks of the kernel.
const observed = 100 * time.Millisecond

// choose chooses the processor for the programs of a start: the one that does least for others now.
func (r *Runner) choose(ctx context.Context) error {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return err
	}
	before := idleTicks()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(observed):
	}
	r.processor.Zero()
	r.processor.Set(quietest(before, idleTicks(), &allowed))
	return nil
}

// quietest returns the allowed processor that was idle most, the last one of equal ones.
func quietest(before, after map[int]int, allowed *unix.CPUSet) int {
	best, most := 0, -1
	for cpu := range 8 * int(len(allowed)) * 8 {
		if idle := after[cpu] - before[cpu]; allowed.IsSet(cpu) && idle >= most {
			best, most = cpu, idle
		}
	}
	return best
}

// idleTicks returns for how long each processor was idle since the start of the machine, in ticks of the kernel.
func idleTicks() map[int]int {
	const idle = 4
	ticks := map[int]int{}
	text, _ := os.ReadFile("/proc/stat") // without it all are equal
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if cpu, err := strconv.Atoi(strings.TrimPrefix(fields[0], "cpu")); err == nil {
			ticks[cpu] = number(fields, idle)
		}
	}
	return ticks
}

// favour lets a program run before all others on its processor, as far as this user may: it waits
// less, and others do not use its caches meanwhile. The session of the program is its own, so its
// scheduling group, on machines with autogroups, contains nothing else.
func (r *Runner) favour(pid int) {
	const first = -20
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil || allowed.Count() < 2 {
		return // the gate could not stop it in time
	}
	if unix.Setpriority(unix.PRIO_PROCESS, pid, first) == nil {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(first)), 0) // many kernels have none
	}
}
