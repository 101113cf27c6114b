//go:build linux

package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tree copies the files of the counters, so that a test can change one.
func tree(t *testing.T, m *Machine) (write func(name, text string)) {
	t.Helper()
	dir := t.TempDir()
	write = func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m.files.proc = dir
	return write
}

// TestNFSTransfers checks that the transfers of all NFS versions count, by the numbers of
// their procedures: 6 and 8 in version 2, 6 and 7 in version 3, 1 and 2 among the
// operations of version 4. Without an NFS client there are no transfers.
func TestNFSTransfers(t *testing.T) {
	m := openMachine(t)
	write := tree(t, m)
	counts := make([]uint64, counters)
	write("stat", "")
	if err := (kernelCounters{m}).readNFS(counts); err != nil || counts[nfsReads] != 0 || counts[nfsWrites] != 0 {
		t.Errorf("without a client: %d, %d, %v", counts[nfsReads], counts[nfsWrites], err)
	}
	numbers := func(n int, at map[int]string) string {
		words := strings.Fields(strings.Repeat("0 ", n))
		for i, word := range at {
			words[i] = word
		}
		return strings.Join(words, " ")
	}
	write("net/rpc/nfs", "net 0 0 0 0\nrpc 9 0 9\n"+
		"proc2 18 "+numbers(18, map[int]string{6: "1", 8: "2"})+"\n"+
		"proc3 22 "+numbers(22, map[int]string{6: "10", 7: "20"})+"\n"+
		"proc4 61 "+numbers(61, map[int]string{1: "100", 2: "200"})+"\n")
	if err := (kernelCounters{m}).readNFS(counts); err != nil || counts[nfsReads] != 111 || counts[nfsWrites] != 222 {
		t.Errorf("with one: %d, %d, %v", counts[nfsReads], counts[nfsWrites], err)
	}
}

// TestDiskTransfersAreThoseOfTheKernel compares with sums of fields 4 and 8 of
// /proc/diskstats, read before and after.
func TestDiskTransfersAreThoseOfTheKernel(t *testing.T) {
	m := openMachine(t)
	sums := func() (reads, writes uint64) {
		text, err := os.ReadFile("/proc/diskstats")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if _, err := os.Stat("/sys/block/" + f[2] + "/device"); err == nil {
				reads += uint64(field(t, line, "", 3))
				writes += uint64(field(t, line, "", 7))
			}
		}
		return reads, writes
	}
	leastReads, leastWrites := sums()
	counts, err := kernelCounters{m}.read()
	if err != nil {
		t.Fatal(err)
	}
	mostReads, mostWrites := sums()
	if n := counts[diskReads]; n < leastReads || n > mostReads {
		t.Errorf("%d reads, the kernel counts %d to %d", n, leastReads, mostReads)
	}
	if n := counts[diskWrites]; n < leastWrites || n > mostWrites {
		t.Errorf("%d writes, the kernel counts %d to %d", n, leastWrites, mostWrites)
	}
}

// TestDiskRates writes to the disk, if there is one, and compares the rates with the
// kernel's counts.
func TestDiskRates(t *testing.T) {
	m := openMachine(t)
	if _, err := m.kernel.rates(); err != nil { // starts the sampler
		t.Fatal(err)
	}
	file, err := os.CreateTemp(t.TempDir(), "written")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before, err := kernelCounters{m}.read()
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if _, err := file.WriteAt([]byte("some bytes"), 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Fsync(int(file.Fd())); err != nil {
			t.Fatal(err)
		}
	}
	after, err := kernelCounters{m}.read()
	if err != nil {
		t.Fatal(err)
	}
	written := after[diskWrites] - before[diskWrites]
	if rate := value(info(t, m, groupDiskRates)[1]); written > 100 && rate < 2 {
		t.Errorf("%v writes a second, the kernel has counted %d", rate, written)
	}
}

// TestPacketsAreThoseOfTheKernel compares with the packets that ip prints for each link.
func TestPacketsAreThoseOfTheKernel(t *testing.T) {
	m := openMachine(t)
	sums := func() (sums [slow + 1]float64) {
		links, err := m.links()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			// The figures follow lines that begin with RX: and TX:.
			lines := strings.Split(says(t, "ip", "-s", "link", "show", l.name), "\n")
			for i, line := range lines {
				if strings.HasPrefix(strings.TrimSpace(line), "RX:") {
					sums[l.speed] += field(t, lines[i+1], "", 1)
				}
			}
		}
		return sums
	}
	benchNetwork("127.0.0.1")
	least := sums()
	p, err := m.packets()
	if err != nil {
		t.Fatal(err)
	}
	most := sums()
	for kind := range least {
		if n := float64(p.received[kind]); n < least[kind] || n > most[kind] {
			t.Errorf("links of kind %d: %v packets received, ip prints %v to %v", kind, n, least[kind], most[kind])
		}
	}
	if least[local] < 10 {
		t.Errorf("%v local packets", least[local])
	}
}
