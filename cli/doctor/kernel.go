package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"mirador/omis/host/uprobe"
	"mirador/omis/place/clock"
	"mirador/omis/place/kernel"
	"mirador/omis/place/kernel/persist"
)

// needBPF tells which capabilities programs in the kernel need.
func needBPF() string {
	return advice("CAP_BPF and CAP_PERFMON") + "; breakpoints work without programs in the kernel"
}

func seccomp(context.Context) finding {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return failed(err, "")
	}
	for line := range strings.Lines(string(status)) {
		if mode, ok := strings.CutPrefix(line, "Seccomp:"); ok && strings.TrimSpace(mode) != "0" {
			return limited("this process runs under a filter (mode "+strings.TrimSpace(mode)+"), and so does what it starts",
				"if another check fails without a reason, run outside of the container, or with a wider profile")
		}
	}
	return fine("no filter")
}

// harmless returns a program that returns 0.
func harmless() *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{
		Type: ebpf.Kprobe, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}
}

func bpf(context.Context) finding {
	program, err := ebpf.NewProgram(harmless())
	if err != nil {
		why := firstLine(err)
		if text, err := os.ReadFile("/proc/sys/kernel/unprivileged_bpf_disabled"); err == nil {
			why += "; kernel.unprivileged_bpf_disabled is " + strings.TrimSpace(string(text))
		}
		if !capable(unix.CAP_BPF) {
			why += "; CAP_BPF is missing"
		}
		return missing(why, needBPF())
	}
	program.Close()
	return fine("loaded a program")
}

func kernelTypes(context.Context) finding {
	if _, err := btf.LoadKernelSpec(); err != nil {
		return failed(fmt.Errorf("/sys/kernel/btf/vmlinux: %w", err), "take a kernel with CONFIG_DEBUG_INFO_BTF")
	}
	return fine("/sys/kernel/btf/vmlinux")
}

func perfSoftware(context.Context) finding {
	if err := openCounter(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK); err != nil {
		return failed(err, advice("CAP_PERFMON")+", or lower the sysctl kernel.perf_event_paranoid"+paranoia())
	}
	return fine("opened a task clock" + paranoia())
}

func perfHardware(context.Context) finding {
	err := HardwareCounters()
	switch {
	case err == nil:
		return fine("opened a counter of cycles" + paranoia())
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV):
		return failed(err, "this machine shows no performance counters: in a virtual machine, let it have a PMU")
	}
	return failed(err, advice("CAP_PERFMON")+", or lower the sysctl kernel.perf_event_paranoid"+paranoia())
}

func paranoia() string {
	text, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return ""
	}
	return " (kernel.perf_event_paranoid is " + strings.TrimSpace(string(text)) + ")"
}

// HardwareCounters returns the reason why the kernel counts no events of the processor, nil if
// it does.
func HardwareCounters() error {
	return openCounter(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES)
}

func openCounter(kind uint32, config uint64) error {
	attr := unix.PerfEventAttr{Type: kind, Config: config, Size: unix.PERF_ATTR_SIZE_VER5, Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("perf_event_open: %w", err)
	}
	return unix.Close(fd)
}

// uprobes sets a uprobe on a function of this program that is not called meanwhile.
func uprobes(context.Context) finding {
	program, err := ebpf.NewProgram(harmless())
	if err != nil {
		return missing("no BPF program can be loaded", needBPF())
	}
	defer program.Close()
	self, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return failed(err, "")
	}
	probe, err := self.Uprobe("main.main", program, nil)
	if err != nil {
		return missing(firstLine(err), "take a kernel with CONFIG_UPROBE_EVENTS, and "+advice("CAP_PERFMON"))
	}
	probe.Close()
	return fine("set one on this program")
}

// nops tests whether the kernel handles a uprobe on a nop inside a function correctly.
func nops(context.Context) finding {
	switch err := uprobe.CheckNop(); {
	case errors.Is(err, uprobe.ErrRedZone):
		return limited(firstLine(err), "a later kernel; until then our probes there run elsewhere, and other tools that probe there change the results of functions")
	case err != nil:
		return missing(firstLine(err), "probes on such nops run elsewhere")
	}
	return fine("one on a nop inside of a function leaves the function's results alone")
}

// placement checks that the kernel placement can create what all its programs share.
func placement(context.Context) finding {
	placer := kernel.New(nil)
	defer placer.Close()
	if err := placer.Check(); err != nil {
		return missing(firstLine(err), needBPF())
	}
	return fine("probes that count and time run as programs at uprobes")
}

// events checks that the kernel placement can attach to the kernel's tracepoints.
func events(context.Context) finding {
	placer := kernel.New(nil)
	defer placer.Close()
	if err := placer.CheckEvents(); err != nil {
		return missing(firstLine(err), advice("CAP_BPF and CAP_PERFMON")+", on a kernel with CONFIG_FTRACE_SYSCALLS; without it system calls are counted by ptrace, at a thousand times the cost")
	}
	return fine("system calls and waiting are counted and timed by programs at tracepoints")
}

// ticks finds the clock that code in programs can read.
func ticks(context.Context) finding { return clockFinding(clock.Now()) }

func clockFinding(c clock.Clock, err error) finding {
	if err != nil {
		return limited(firstLine(err), "probes only count there; to measure time they run in the kernel, or by breakpoints")
	}
	return fine(fmt.Sprintf("it reads %v: %s; probes that count and time can run as code in the program", c.Kind, c.Why))
}

// outliving checks that objects in the kernel can outlive a killed gateway.
func outliving(context.Context) finding {
	if err := persist.Mount(); err != nil {
		return missing(firstLine(err), "mount -t bpf bpf /sys/fs/bpf; until then probes end with a gateway that is killed")
	}
	return fine("a gateway that was killed finds its probes again, with every count")
}

func tracefs(context.Context) finding {
	const events = "/sys/kernel/tracing/events"
	entries, err := os.ReadDir(events)
	switch {
	case errors.Is(err, os.ErrPermission):
		return failed(err, advice("CAP_DAC_READ_SEARCH")+", or mount tracefs with a group it is in")
	case err != nil || len(entries) == 0:
		return missing("nothing at "+events, "mount -t tracefs tracefs /sys/kernel/tracing")
	}
	return fine(events)
}

// firstLine removes the verifier's log from an error.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
