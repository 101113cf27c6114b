// goroutines: after a line on standard input, many of them compute, allocate, grow
// their stacks and recover from faults; then it prints a sum, and waits for the end of
// its input.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
)

//go:noinline
func work(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

//go:noinline
func deep(n int, x uint64) uint64 {
	var room [64]uint64
	room[n%64] = work(x)
	if n == 0 {
		return room[0]
	}
	return deep(n-1, room[n%64]) + room[n%64]
}

type list struct {
	next  *list
	value uint64
}

//go:noinline
func (l *list) last() uint64 { return l.next.value }

//go:noinline
func fault(l *list) (sum uint64) {
	defer func() {
		if recover() != nil {
			sum = 7
		}
	}()
	return l.last()
}

func choose(kind int, x uint64) uint64 {
	switch kind % 9 {
	case 0:
		return x + 1
	case 1:
		return x ^ 99
	case 2:
		return x << 2
	case 3:
		return x >> 3
	case 4:
		return work(x)
	case 5:
		return ^x
	case 6:
		return x / 3
	case 7:
		return x % 1001
	}
	return uint64(kind)
}

func main() {
	fmt.Println("ready", 0)
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	var all sync.WaitGroup
	sums := make([]uint64, 40)
	for i := range sums {
		all.Add(1)
		go func() {
			defer all.Done()
			x := uint64(i)
			words := map[string]uint64{}
			for k := range 300 {
				x += deep(k%200, x) + fault(&list{}) + fault(&list{next: &list{value: x}})
				x = choose(k, x)
				words[fmt.Sprint(x%100)] += x
			}
			keys := make([]string, 0, len(words))
			for key := range words {
				keys = append(keys, key)
			}
			sort.Strings(keys)
			for _, key := range keys {
				x = work(x ^ words[key])
			}
			sums[i] = x
		}()
	}
	all.Wait()
	var sum uint64
	for _, s := range sums {
		sum = work(sum ^ s)
	}
	fmt.Printf("sum %x\n", sum)
	io.Copy(io.Discard, in)
}
