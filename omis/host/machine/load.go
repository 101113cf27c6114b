//go:build linux

package machine

import (
	"os"
	"path/filepath"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// load omits two components: Linux does not distinguish processes that wait for a page
// from those that wait for its disk, and does not swap out whole processes.
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

// sleeping counts the processes in interruptible sleep, including kernel threads.
func (m *Machine) sleeping() (n int64) {
	paths, _ := filepath.Glob(filepath.Join(m.files.proc, "[0-9]*", "stat"))
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended since
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
