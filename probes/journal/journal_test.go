package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() }) // closing twice has no effect
	return j
}

// killed returns a copy of the directory as it is left by a gateway that is killed when the
// journal has size bytes.
func killed(t *testing.T, dir string, size int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	left := t.TempDir()
	if err := os.WriteFile(filepath.Join(left, File), text[:min(size, len(text))], 0o600); err != nil {
		t.Fatal(err)
	}
	return left
}

func TestWrittenRecordsAreRead(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	for i := range 3 {
		if err := j.Put(fmt.Sprint("probe/", i), []int{i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Put("probe/1", []int{10}); err != nil {
		t.Fatal(err)
	}
	if err := j.Delete("probe/0"); err != nil {
		t.Fatal(err)
	}
	k := open(t, killed(t, dir, 1<<20))
	if got := k.Keys("probe/"); !slices.Equal(got, []string{"probe/1", "probe/2"}) {
		t.Errorf("keys %q", got)
	}
	var value []int
	if ok, err := k.Get("probe/1", &value); !ok || err != nil || value[0] != 10 {
		t.Errorf("%v, %v, %v", value, ok, err)
	}
	if ok, _ := k.Get("probe/0", &value); ok || k.Damage().Cut || k.Damage().Lines != nil {
		t.Errorf("a deleted value is there; %+v", k.Damage())
	}
}

// TestTornWrites cuts the file after every byte. Earlier records are read, and later writes
// succeed.
func TestTornWrites(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	if err := j.Put("first", "1"); err != nil {
		t.Fatal(err)
	}
	whole := int(j.size)
	if err := j.Put("second", "2"); err != nil {
		t.Fatal(err)
	}
	for size := whole; size < int(j.size); size++ {
		left := killed(t, dir, size)
		k := open(t, left)
		if got := k.Keys(""); !slices.Equal(got, []string{bootKey, "first", idKey}) || k.Damage().Cut != (size > whole) || k.Damage().Lines != nil {
			t.Fatalf("cut after %d bytes: %q, %+v", size, got, k.Damage())
		}
		if err := errors.Join(k.Put("third", "3"), k.Close()); err != nil {
			t.Fatal(err)
		}
		if got := open(t, left).Keys(""); !slices.Equal(got, []string{bootKey, "first", idKey, "third"}) {
			t.Fatalf("cut after %d bytes, then written: %q", size, got)
		}
	}
}

// TestJournalOfAnEarlierBoot checks that records of an earlier boot are dropped, because their
// processes have ended.
func TestJournalOfAnEarlierBoot(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	if err := errors.Join(j.Put("app/x", 1), j.Put(bootKey, "another"), j.Close()); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir).Keys(""); !slices.Equal(got, []string{bootKey, idKey}) {
		t.Errorf("keys %q", got)
	}
}

// TestOutdatedRecordsAreDropped checks that a value that changes constantly does not fill the disk.
func TestOutdatedRecordsAreDropped(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	value := bytes.Repeat([]byte("x"), 10_000)
	for i := range 1000 {
		if err := j.Put("same", append(value, fmt.Sprint(i)...)); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(j.path); err != nil || info.Size() > 2*slack || info.Size() != j.size {
		t.Errorf("%v, %v", info.Size(), err)
	}
	var last []byte
	if ok, err := open(t, killed(t, dir, 1<<30)).Get("same", &last); !ok || err != nil || !bytes.HasSuffix(last, []byte("999")) {
		t.Errorf("%v %v %q", ok, err, last)
	}
}

func TestOneGatewayOnly(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	_, err := Open(dir)
	var used *InUse
	if !errors.As(err, &used) || used.By != fmt.Sprint(os.Getpid()) {
		t.Fatalf("%v", err)
	}
	j.Close()
	open(t, dir)
}

// TestDiskIsFullForAWhile checks that records that could not be written are written when the
// disk has room again, even if the file cannot be repaired and must be replaced.
func TestDiskIsFullForAWhile(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	if err := errors.Join(j.Put("app/one", "1"), j.Put("app/two", "2")); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0) // can be neither written nor truncated
	if err != nil {
		t.Fatal(err)
	}
	j.mu.Lock()
	disk := j.file
	j.file = full
	j.mu.Unlock()
	defer disk.Close()
	if err := os.Mkdir(j.path+".new", 0o700); err != nil { // so that the journal cannot create a new file
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(j.path+".new", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var unwritten *Unwritten
	if err := j.Put("app/three", "3"); !errors.As(err, &unwritten) || !errors.Is(err, unix.ENOSPC) || !unwritten.Lasts() {
		t.Fatalf("%v", err)
	}
	if err := j.Delete("app/one"); err == nil {
		t.Error("Delete reports no error although it could not write")
	}
	if got := open(t, killed(t, dir, 1<<20)).Keys("app/"); !slices.Equal(got, []string{"app/one", "app/two"}) {
		t.Errorf("on the full disk, the file has the keys %q", got)
	}
	if err := os.RemoveAll(j.path + ".new"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); unwritten.Lasts(); time.Sleep(retryDelay / 10) {
		if time.Now().After(end) {
			t.Fatal("the journal does not write the records")
		}
	}
	if got := open(t, killed(t, dir, 1<<20)).Keys("app/"); !slices.Equal(got, []string{"app/three", "app/two"}) {
		t.Errorf("after the disk had room again, the file has the keys %q", got)
	}
}

// TestOpenedOnAFullDisk checks that a journal on a full disk is opened without rewriting it.
func TestOpenedOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	if err := errors.Join(j.Put("app/one", "1"), j.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	whole := len(text)
	text = append(text, "01234567 cut short"...)
	if err := os.WriteFile(j.path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	j = &Journal{path: j.path, values: j.values, missing: make(map[string]bool)}
	if err := j.resume(text); err != nil {
		t.Fatal(err)
	}
	defer j.file.Close()
	if err := j.Put("app/two", "2"); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(j.path); err != nil || !bytes.HasPrefix(after, text[:whole]) || bytes.Contains(after, []byte("cut short")) {
		t.Errorf("the file holds %q, %v", after, err)
	}
	if got := open(t, killed(t, dir, 1<<20)).Keys("app/"); !slices.Equal(got, []string{"app/one", "app/two"}) {
		t.Errorf("keys %q", got)
	}
}
