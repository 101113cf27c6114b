//go:build linux

package proc

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

// TestParseStatAgainstProcfs compares our parser with that of package procfs, on a
// process that waits and so does not change.
func TestParseStatAgainstProcfs(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	p, err := procfs.NewProc(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	want, err := p.Stat()
	for n := 0; n < 30000 && err == nil && (want.State != "S" || want.Comm != "cat"); n++ {
		time.Sleep(time.Millisecond)
		want, err = p.Stat()
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := readStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if got.parent != want.PPID || got.flags != uint64(want.Flags) || got.nice != int64(want.Nice) || got.start != want.Starttime ||
		string(rune(got.state)) != want.State || got.majorFaults != int64(want.MajFlt) || got.memory != int64(want.VSize) {
		t.Errorf("%+v, procfs has %+v", got, want)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " -1 2 3 4 -1 6 7 8 9 10 11 12 13 14 15 -16 17 18 19 20 21 18446744073709551615 x\n"
	for _, name := range []string{"sh", "", "a) R (b", "((", ") ) S 1 2 3", "a\nb"} {
		s, err := parseStat([]byte("12 (" + name + ") S" + rest))
		if err != nil || string(s.name) != name || s.state != 'S' || s.parent != -1 || s.flags != 6 || s.minorFaults != 7 ||
			s.majorFaults != 9 || s.userTime != 11 || s.systemTime != 12 || s.nice != -16 || s.threads != 17 || s.start != 19 ||
			s.memory != 20 {
			t.Errorf("%q: %+v, %v", name, s, err)
		}
	}
	for _, text := range []string{"", "1", "1 (a", "1 (a)", "1 (a) ", "1 (a) S", "1 (a) S ", "1 (a) S 1 2 3", "1 (a) S 1 2 - 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"} {
		if s, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func TestPairs(t *testing.T) {
	text := "Name:\tmy sh\nVmHWM:\t  12 kB\nempty:\n\nno separator\npgpgin 7\nUid:\t1\t2\t3\t4"
	var got bytes.Buffer
	for name, value := range Pairs([]byte(text)) {
		got.WriteString(string(name) + "=" + string(value) + ";")
	}
	if want := "Name=my sh;VmHWM=12 kB;empty=;no=separator;pgpgin=7;Uid=1\t2\t3\t4;"; got.String() != want {
		t.Errorf("%q, want %q", got.String(), want)
	}
	s := parseStatus([]byte(text))
	if s.Name != "my sh" || s.MostResident != 12<<10 || s.UIDs != [4]int{1, 2, 3, 4} {
		t.Errorf("%+v", s)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte("1 (a) S 1"))
	f.Add([]byte("State:\nUid:\t1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		parseStat(text)
		parseStatus(text)
	})
}

func TestStateLetter(t *testing.T) {
	for stat, want := range map[string]byte{"1 (a) S 0": 'S', "2 (a) R (b) D 1": 'D', "": 0, "3 (x) ": 0} {
		if got := StateLetter([]byte(stat)); got != want {
			t.Errorf("%q: %c", stat, got)
		}
	}
}
