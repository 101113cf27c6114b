//go:build linux && amd64

package kernel_test

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel"
)

// criuForTests returns the path of the CRIU that scripts/criu has installed. If the script could not
// install one, no file has this path, and requests to save are refused.
func criuForTests(t *testing.T) string {
	t.Helper()
	beside, err := filepath.Abs("../../../bin/criu")
	if err != nil {
		t.Fatal(err)
	}
	cache, _ := os.UserCacheDir()
	for _, path := range []string{beside, filepath.Join(cache, "mirador", "criu", "criu")} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if path, err := exec.LookPath("criu"); err == nil {
		return path
	}
	return beside
}

// A process is saved again and again while a thread calls what is counted in the kernel. Each call counts
// once, and the kernel continues to count, even if CRIU cannot save the process.
func TestSavedWhileCounting(t *testing.T) {
	for _, try := range []struct {
		name string
		why  string // why CRIU cannot save it, "" if it can
	}{
		{"pad_push", ""},
		{"pad_sub", "has a page of the kernel for them, which CRIU cannot save"},
	} {
		t.Run(try.name, func(t *testing.T) {
			g := rig.Start(t, buildPads(t))
			r := rig.Open(t, linux.Config{Name: "here", CRIU: criuForTests(t), Checkpoints: t.TempDir()}, inKernel, g)
			which := 0
			for pads[which].name != try.name {
				which++
			}
			r.Ask(": pa_counter_create()")
			r.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1)", g.Func[try.name])
			r.Enable()
			g.Do("spin %d", which)
			counted := func() uint64 { return r.Ask(": pa_counter_sum([pa_c_1],2)")[1][0].Values[1].List[2].N }
			own := func() uint64 {
				return binary.LittleEndian.Uint64(g.Code(g.Func["many_calls"]+uint64(8*which), 8))
			}
			for range 3 {
				for before := own(); own() < before+100; {
					time.Sleep(time.Millisecond)
				}
				reply, err := r.Tool.Request(context.Background(), `: proc_checkpoint([],"again")`, nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				said := reply.Err()
				switch {
				case said != nil && strings.Contains(said.Error(), omis.UnsupportedService.String()):
					t.Attr("untested", said.Error()) // CRIU does not work here
				case try.why == "" && said != nil, try.why != "" && (said == nil || !strings.Contains(said.Error(), try.why)):
					t.Errorf("the reply to the checkpoint is %v, want %q", said, try.why)
				}
				if where := r.Where(); where != kernel.Name {
					t.Errorf("after the checkpoint the request runs in %s", where)
				}
			}
			g.Do("halt")
			if got, want := counted(), own(); got != want || want < 300 {
				t.Errorf("%d calls were counted, %d were made", got, want)
			}
		})
	}
}
