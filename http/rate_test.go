package gateway

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRate sends more requests than a caller may send in a second.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5
		s := New(Config{Rate: limit, ProcessOwner: func(int) (int, error) { return owner.UID, nil }}, one())
		answer := func(c *Caller, target, from string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", target, nil)
			r.RemoteAddr = from
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r.WithContext(withCaller(r.Context(), c)))
			return w
		}
		const here, there = "127.0.0.1:1000", "192.0.2.1:1000"
		status := func(c *Caller, from string) int { return answer(c, "/apps", from).Code }
		for range limit {
			if got := status(owner, here); got != 200 {
				t.Fatalf("status %d below the limit", got)
			}
		}
		w := answer(owner, "/apps", here)
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "more than 5 requests in a second") {
			t.Errorf("status %d, %v: %s", w.Code, w.Header(), w.Body)
		}
		if got := status(other, here); got != 200 {
			t.Errorf("another user has the status %d", got)
		}
		for range 3 * limit {
			if got := status(root, here); got != 200 {
				t.Fatalf("root has the status %d", got)
			}
			status(stranger, here)
		}
		if got := status(stranger, here); got != 429 {
			t.Errorf("a caller without identity has the status %d", got)
		}
		if got := status(stranger, there); got != 401 {
			t.Errorf("a caller from elsewhere has the status %d", got)
		}
		time.Sleep(2 * time.Second)
		if got := status(owner, here); got != 200 {
			t.Errorf("after two seconds the status is %d", got)
		}
	})
}
