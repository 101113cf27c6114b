//go:build linux

package machine

import (
	"os"
	"path/filepath"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// load: Linux does not tell those who wait for a page from those who wait for
// the disk it is on, and swaps out no processes as a whole.
func (m *Machine) load() ([]omis.Value, error) {
	stat, err := m.fs.Stat()
	if err != nil {
		return nil, err
	}
	average, err := m.fs.LoadAvg()
	if err != nil {
		return nil, err
	}
	return []omis.Value{
		omis.Uint(stat.ProcessesRunning), omis.Uint(stat.ProcessesBlocked),
		none, omis.Int(m.sleeping()), none,
		omis.Float(average.Load1), omis.Float(average.Load5), omis.Float(average.Load15),
	}, nil
}

// sleeping counts the processes that sleep and may be woken, the kernel's own
// included.
func (m *Machine) sleeping() (n int64) {
	paths, _ := filepath.Glob(filepath.Join(m.files.proc, "[0-9]*", "stat"))
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended since
		}
		switch proc.StateLetter(b) {
		case 'S', 'I':
			n++
		}
	}
	return n
}

func (m *Machine) freeMemory() ([]omis.Value, error) {
	mem, err := m.fs.Meminfo()
	if err != nil {
		return nil, err
	}
	used := none
	if mem.MemTotal != nil && mem.MemFree != nil {
		used = pages((*mem.MemTotal - *mem.MemFree) * 1024)
	}
	return []omis.Value{kilobytes(mem.MemFree), used, kilobytes(mem.SwapFree)}, nil
}
