package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const allowPtrace = "in a container, allow it (docker run --cap-add SYS_PTRACE, or a seccomp profile that permits ptrace)"

// allowAll tells what is needed to trace processes that are not descendants.
func allowAll() string {
	return advice("CAP_SYS_PTRACE") + ", or set the sysctl kernel.yama.ptrace_scope to 0; programs started by \"mirador run\" can be observed anyhow"
}

func traceChild(context.Context) finding {
	pid, end, err := startChild()
	if err != nil {
		return failed(err, "")
	}
	defer end()
	if err := traced(pid, func() error { return nil }); err != nil {
		return failed(err, allowPtrace)
	}
	return fine("attached to a child, stopped it and let it go")
}

func traceStranger(context.Context) finding {
	scope := "without yama"
	if text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		scope = "kernel.yama.ptrace_scope is " + strings.TrimSpace(string(text))
	}
	pid, end, err := startUnrelated()
	if err != nil {
		return failed(err, "")
	}
	defer end()
	if err := traced(pid, func() error { return nil }); err != nil {
		return limited(fmt.Sprintf("%v; %s", err, scope), allowAll())
	}
	if !capable(unix.CAP_SYS_PTRACE) {
		return limited("own processes only: CAP_SYS_PTRACE is missing; "+scope, advice("CAP_SYS_PTRACE")+" to observe other users' processes")
	}
	return fine("with CAP_SYS_PTRACE; " + scope)
}

func readChild(context.Context) finding {
	pid, end, err := startChild()
	if err != nil {
		return failed(err, "")
	}
	defer end()
	addr, err := textAddress(pid)
	if err != nil {
		return failed(err, "")
	}
	var buf [8]byte
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}
	if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err != nil {
		return failed(fmt.Errorf("process_vm_readv: %w", err), allowPtrace)
	}
	return fine("read a child's memory")
}

// writeChild overwrites a byte of code by itself while the process is traced; with
// proc_mem.force_override=ptrace a kernel allows the write only then.
func writeChild(context.Context) finding {
	pid, end, err := startChild()
	if err != nil {
		return failed(err, "")
	}
	defer end()
	addr, err := textAddress(pid)
	if err != nil {
		return failed(err, "")
	}
	err = traced(pid, func() error {
		mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer mem.Close()
		var b [1]byte
		if _, err := mem.ReadAt(b[:], int64(addr)); err != nil {
			return err
		}
		_, err = mem.WriteAt(b[:], int64(addr))
		return err
	})
	if err != nil {
		return failed(err, "breakpoints need it: do not boot the kernel with proc_mem.force_override=never")
	}
	return fine("wrote to a child's code")
}

// capable reports whether this process has a capability in effect.
func capable(capability uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}
