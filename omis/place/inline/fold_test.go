//go:build linux && amd64

package inline_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/place/inline"
)

// memoryFile makes the memory that outlives a folder.
func memoryFile(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("folder", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "folder")
	t.Cleanup(func() { file.Close() })
	if err := file.Truncate(1 << 28); err != nil {
		t.Fatal(err)
	}
	return file
}

// A monitor is killed after it has written a sum and before it has deleted all records in it. Each thread
// counts once.
func TestFoldedPartly(t *testing.T) {
	const records = 6
	for struck := range records + 1 {
		file := memoryFile(t)
		for range 3 {
			f, err := inline.OpenFolder(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Add(10), f.FoldPartly(records, struck), f.Close()); err != nil {
				t.Fatal(err)
			}
			checkFolder(t, file)
		}
	}
}

// A monitor is killed while it adds up records of ended threads. Each thread counts once, in its own record
// or in the sum.
func TestKilledWhileFolding(t *testing.T) {
	file := memoryFile(t)
	for range 25 {
		killFolder(t, file)
		checkFolder(t, file)
	}
}

// killFolder starts a folder, and kills it while it works.
func killFolder(t *testing.T, file *os.File) {
	t.Helper()
	before := folded(t, file)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.ExtraFiles, cmd.Stderr = inline.FolderEnv(), []*os.File{file}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); folded(t, file) < before+20; {
		if time.Sleep(time.Millisecond); time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			cmd.Wait()
			t.Fatal("nothing is added up")
		}
	}
	time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // it was killed
}

// folded returns how many threads there were so far.
func folded(t *testing.T, file *os.File) uint64 {
	t.Helper()
	var b [8]byte
	if _, err := file.ReadAt(b[:], inline.FolderDone); err != nil {
		t.Fatal(err)
	}
	var n uint64
	for i, v := range b {
		n |= uint64(v) << (8 * i)
	}
	return n
}

func checkFolder(t *testing.T, file *os.File) {
	t.Helper()
	f, err := inline.OpenFolder(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	threads, inBuckets, least, most := f.Totals()
	if threads != inBuckets || threads < least || threads > most {
		t.Errorf("records tell of %d threads, their buckets of %d; there were %d to %d", threads, inBuckets, least, most)
	}
	f.Count(threads)
	if n, used := f.Records(); n > 30 || used > 34*n {
		t.Errorf("%d records, which take %d of the ledger", n, used)
	}
}
