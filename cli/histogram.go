package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mirador/mir/client"
)

// bucket counts the executions that took at most so many seconds, and more than those of the bucket before.
type bucket struct {
	AtMost     float64 `json:"at_most_seconds"` // 0 in the last bucket, which has no limit
	Executions int64   `json:"executions"`
}

// readHistogram reads how many executions of a probe took how long, of all entities together. The gateway has these
// numbers in its metrics, for probes with a label.
func readHistogram(ctx context.Context, c *client.Client, probe string) ([]bucket, error) {
	reply, err := c.Do(ctx, client.Request{Method: http.MethodGet, Path: "/metrics"})
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return nil, err
	}
	return histogramIn(string(reply.Body), probe)
}

// histogramIn finds the histogram of a probe in metrics, whose buckets include the buckets before.
func histogramIn(metrics, probe string) (list []bucket, err error) {
	line := regexp.MustCompile(`(?m)^mirador_probe_execution_\w+_bucket\{(?:.*,)?probe="` + regexp.QuoteMeta(probe) + `",.*\ble="([^"]+)"\} (\S+)$`)
	counts := make(map[float64]int64)
	for _, m := range line.FindAllStringSubmatch(metrics, -1) {
		limit, err := strconv.ParseFloat(m[1], 64) // also +Inf
		if err != nil {
			return nil, err
		}
		count, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		if counts[limit] += int64(count); !slices.ContainsFunc(list, func(b bucket) bool { return b.AtMost == limit }) {
			list = append(list, bucket{AtMost: limit})
		}
	}
	before := int64(0)
	for i := range list {
		b := &list[i]
		b.Executions, before = counts[b.AtMost]-before, counts[b.AtMost]
		if math.IsInf(b.AtMost, 1) {
			b.AtMost = 0
		}
	}
	return trimmed(list), nil
}

// trimmed returns the buckets from the first to the last that has executions.
func trimmed(list []bucket) []bucket {
	empty := func(b bucket) bool { return b.Executions == 0 }
	for len(list) > 0 && empty(list[0]) {
		list = list[1:]
	}
	for len(list) > 0 && empty(list[len(list)-1]) {
		list = list[:len(list)-1]
	}
	return list
}

// longestBar is the number of characters of the bucket with most executions.
const longestBar = 40

// printHistogram prints a line for each bucket, with a bar.
func printHistogram(w io.Writer, list []bucket) error {
	most := int64(1)
	for _, b := range list {
		most = max(most, b.Executions)
	}
	return printTable(w, tableFormat{}, table[bucket]{
		header: []string{"UP TO", "EXECUTIONS", ""}, rows: list,
		cells: func(b bucket) []string {
			limit := time.Duration(math.Round(b.AtMost * 1e9)).String()
			if b.AtMost == 0 {
				limit = "longer"
			}
			bar := strings.Repeat("█", int(b.Executions*longestBar/most))
			if bar == "" && b.Executions > 0 {
				bar = "▏"
			}
			return []string{limit, fmt.Sprint(b.Executions), bar}
		},
	})
}
