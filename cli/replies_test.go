package cli

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"mirador/mir/client"
)

// TestThousandsOfReplies enables thousands of requests at once and triggers them at once, before
// the tool connects its stream. No reply is lost, even if the reader reconnects in the middle.
func TestThousandsOfReplies(t *testing.T) {
	const many = 3000
	s := startServe(t, os.Geteuid())
	_, w := startWitness(t)
	c, err := client.New("unix:"+s.socket, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(request string) string {
		reply, err := c.Do(t.Context(), client.Request{Method: http.MethodPost, Path: "/omis?tool=many", Type: "text/plain", Accept: "text/plain", Body: []byte(request)})
		if err != nil || reply.Status != http.StatusOK {
			t.Errorf("%s: %v, %v", request, reply, err)
			return ""
		}
		return string(reply.Body)
	}
	ask(fmt.Sprintf(`: proc_attach3([],%d,"")`, w.pid))
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for range many / 4 {
				ask("proc_has_terminated([p_1]) : print([1])")
			}
		})
	}
	senders.Wait()
	if reply := ask(": csr_enable([])"); strings.Count(reply, "OMIS_OK")+strings.Count(reply, ",c_") < 2 || strings.Contains(reply, "ERROR") {
		t.Fatalf("%.500s", reply)
	}
	w.cmd.Process.Kill()
	count := map[string]int{}
	last := ""
	for part := range 2 {
		stream, err := c.Events(t.Context(), "/omis/tools/many/replies?format=text", last)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < many || part == 1 && n < many+1; n++ {
			reply, err := stream.Next()
			if err != nil {
				t.Fatalf("the stream ends after %v: %v", count, err)
			}
			count[strings.Fields(reply.Data)[1]]++
			if n == many-1 && part == 0 {
				last = reply.ID
				stream.Next() // discard a reply
				break
			}
			if part == 1 && count["OMIS_CSR_TRIGGERED(10)"] == many {
				break
			}
		}
		stream.Close()
	}
	if count["OMIS_CSR_ENABLED(4)"] != many || count["OMIS_CSR_TRIGGERED(10)"] != many || len(count) > 3 {
		t.Errorf("%v", count)
	}
}
