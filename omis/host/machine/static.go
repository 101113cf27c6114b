//go:build linux

package machine

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

func (m *Machine) nodeName() ([]omis.Value, error) {
	return []omis.Value{omis.String(m.name)}, nil
}

func (m *Machine) system() ([]omis.Value, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, err
	}
	stat, err := m.fs.Stat()
	if err != nil {
		return nil, err
	}
	return []omis.Value{
		text(u.Sysname[:]), text(u.Version[:]), text(u.Release[:]), text(u.Nodename[:]),
		omis.Uint(stat.BootTime),
	}, nil
}

func text(field []byte) omis.Value { return omis.String(unix.ByteSliceToString(field)) }

func (m *Machine) processors() ([]omis.Value, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, err
	}
	installed, err := m.installed()
	if err != nil {
		return nil, err
	}
	return []omis.Value{
		text(u.Machine[:]), omis.Int(int64(installed)), m.mostProcesses(), m.clock(),
		omis.Float(m.bench.integer()), omis.Float(m.bench.floating()),
	}, nil
}

// installed counts the processors of the machine, including offline ones.
func (m *Machine) installed() (int, error) {
	present, err := line(filepath.Join(m.files.sys, "devices/system/cpu/present"))
	if err != nil {
		return 0, err
	}
	return ranges(present)
}

// ranges counts the members of a list such as 0-3,8.
func ranges(list string) (n int, err error) {
	for r := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || b < a {
			return 0, fmt.Errorf("cannot read the list of processors %q", list)
		}
		n += b - a + 1
	}
	return n, nil
}

// mostProcesses returns the smaller of two limits: every process needs a thread and a
// number.
func (m *Machine) mostProcesses() omis.Value {
	threads := number(filepath.Join(m.files.proc, "sys/kernel/threads-max"))
	numbers := number(filepath.Join(m.files.proc, "sys/kernel/pid_max"))
	if threads.Neg || !numbers.Neg && numbers.N < threads.N {
		return numbers
	}
	return threads
}

// clock returns the highest frequency in MHz, or the present one if the highest is
// unknown.
func (m *Machine) clock() omis.Value {
	most := number(filepath.Join(m.files.sys, "devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
	if !most.Neg {
		return omis.Uint(most.N / 1000)
	}
	cpus, err := m.fs.CPUInfo()
	if err != nil || len(cpus) == 0 || cpus[0].CPUMHz == 0 {
		return none
	}
	return omis.Uint(uint64(cpus[0].CPUMHz + 0.5))
}

// pages converts bytes to pages.
func pages(size uint64) omis.Value { return omis.Uint(size / uint64(os.Getpagesize())) }

func (m *Machine) memory() ([]omis.Value, error) {
	mem, err := m.fs.Meminfo()
	if err != nil {
		return nil, err
	}
	return []omis.Value{
		kilobytes(mem.MemTotal), omis.Int(int64(os.Getpagesize())), omis.Float(m.bench.memory()),
	}, nil
}

// kilobytes converts kilobytes, the unit of /proc/meminfo, to pages.
func kilobytes(n *uint64) omis.Value {
	if n == nil {
		return none
	}
	return pages(*n * 1024)
}

func (m *Machine) disks() ([]omis.Value, error) {
	names, err := m.localDisks()
	if err != nil {
		return nil, err
	}
	var size uint64
	for _, name := range names {
		const sector = 512 // the unit of this file for any disk
		sectors := number(filepath.Join(m.files.sys, "block", name, "size"))
		if !sectors.Neg {
			size += sectors.N * sector
		}
	}
	mem, err := m.fs.Meminfo()
	if err != nil {
		return nil, err
	}
	return []omis.Value{
		omis.Int(int64(len(names))), pages(size), temporarySpace(), kilobytes(mem.SwapTotal),
		omis.Float(m.bench.disk()),
	}, nil
}

// localDisks returns the block devices that are hardware. Loop devices, compressed memory
// and combinations of other disks would count twice.
func (m *Machine) localDisks() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(m.files.sys, "block"))
	if os.IsNotExist(err) {
		return nil, nil // a kernel without block devices
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(m.files.sys, "block", e.Name(), "device")); err == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func temporarySpace() omis.Value {
	var fs unix.Statfs_t
	if err := unix.Statfs(os.TempDir(), &fs); err != nil {
		return none
	}
	return pages(fs.Blocks * uint64(fs.Bsize))
}

// users returns the limit of logins. Linux itself has none, but login programs enforce
// maxsyslogins of pam_limits.
func (m *Machine) users() ([]omis.Value, error) {
	files, err := filepath.Glob(filepath.Join(m.files.limits, "limits.d", "*.conf"))
	if err != nil {
		return nil, err
	}
	most := none
	for _, path := range append([]string{filepath.Join(m.files.limits, "limits.conf")}, files...) {
		if n, ok := mostLogins(path); ok {
			most = omis.Int(n) // a later file replaces what an earlier one says
		}
	}
	return []omis.Value{most}, nil
}

// mostLogins finds the lines "* - maxsyslogins N" (or hard), which apply to all users.
func mostLogins(path string) (most int64, found bool) {
	file, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		rule, _, _ := strings.Cut(s.Text(), "#")
		f := strings.Fields(rule)
		if len(f) != 4 || f[0] != "*" || f[1] == "soft" || f[2] != "maxsyslogins" {
			continue
		}
		if n, err := strconv.ParseInt(f[3], 10, 64); err == nil {
			most, found = n, true
		}
	}
	return most, found
}
