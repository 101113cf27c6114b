package pa

import (
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/service"
)

// maxInterval is a day in milliseconds.
const maxInterval = 24 * 60 * 60 * 1000

// intervals raises an event every so many milliseconds. If the action lists take longer
// than an interval, it skips the occurrences that fall into them, so that they never pile
// up.
func intervals(args []omis.Value, _ service.Scope, raise func(service.Occurrence)) (func(), error) {
	ms, ok := args[0].Int64()
	if !ok || ms < 1 || ms > maxInterval {
		return nil, omis.Errorf(omis.ParameterError, "an interval is 1 to %d milliseconds", maxInterval)
	}
	stop := make(chan struct{})
	go tick(time.Duration(ms)*time.Millisecond, raise, stop)
	return sync.OnceFunc(func() { close(stop) }), nil
}

func tick(every time.Duration, raise func(service.Occurrence), stop <-chan struct{}) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			raise(service.Occurrence{})
		}
	}
}
