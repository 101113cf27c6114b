// A Go server that has the same result in every round: eight clients of its own send it JSON
// over HTTP, handlers sort, panic and recover, stacks grow, garbage is collected. Functions
// named counted… count their calls; they are so small that their stacks never grow, because
// Go enters a function twice when its stack grows.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

var mixCalls, stepCalls, foldCalls atomic.Int64

//go:noinline
//go:nosplit
func countedMix(x uint32) uint32 {
	mixCalls.Add(1)
	x ^= x >> 16
	x *= 0x85ebca6b
	return x ^ x>>13
}

//go:noinline
//go:nosplit
func countedStep(x uint32, n int) uint32 {
	stepCalls.Add(1)
	return x*31 + uint32(n)
}

//go:noinline
//go:nosplit
func countedFold(list []uint32) (sum uint32) {
	foldCalls.Add(1)
	for _, v := range list {
		sum = sum<<5 - sum + v
	}
	return sum
}

type order struct {
	ID    int            `json:"id"`
	Words []string       `json:"words"`
	Sizes map[string]int `json:"sizes"`
}

func deep(n int) (x uint32) {
	var room [64]uint32
	if n == 0 {
		panic("the ground")
	}
	room[n%64] = countedMix(uint32(n))
	defer func() { x += room[n%64] }()
	return deep(n-1) + 1
}

func fall(n int) (x uint32) {
	defer func() {
		if why := recover(); why != nil {
			x = countedStep(uint32(len(fmt.Sprint(why))), n)
		}
	}()
	return deep(n)
}

func handle(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	slices.Sort(o.Words)
	x := fall(20 + o.ID%7)
	var list []uint32
	for i, word := range o.Words {
		x = countedStep(countedMix(x+crc32.ChecksumIEEE([]byte(word))), i)
		list = append(list, x)
	}
	o.Sizes = map[string]int{"sum": int(countedFold(list)), "words": len(o.Words)}
	json.NewEncoder(w).Encode(o)
}

func client(c *http.Client, url string, id int) (x uint32) {
	for i := range 4 {
		body, _ := json.Marshal(order{ID: id*10 + i, Words: strings.Fields(strings.Repeat(fmt.Sprintf("w%d x%d y ", i, id), 6))})
		reply, err := c.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK {
			fmt.Println("error", reply.Status, err)
			os.Exit(1)
		}
		x = countedStep(x^crc32.ChecksumIEEE(text), i)
	}
	return x
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	go http.Serve(l, http.HandlerFunc(handle))
	c := &http.Client{}
	url := "http://" + l.Addr().String()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var results [8]uint32
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() { results[i] = client(c, url, i) })
		}
		wg.Wait()
		runtime.GC()
		fmt.Printf("%08x main.countedMix=%d main.countedStep=%d main.countedFold=%d\n",
			countedFold(results[:]), mixCalls.Swap(0), stepCalls.Swap(0), foldCalls.Swap(0))
	}
}
