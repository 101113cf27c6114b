package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"mirador/mir"
	"mirador/mir/client"
)

// The program counts the calls of a function of a running program, as "mirador probe" does.
func Example() {
	ctx := context.Background()
	mirador, err := client.New("", client.Options{}) // MIRADOR_GATEWAY, or the default socket
	if err != nil {
		log.Fatal(err)
	}
	defer mirador.Close()

	// The application mmul exists already. Otherwise Attach or Launch create it.
	probe, err := mirador.Instrument(ctx, "mmul", &mir.InstrRequest{
		Region:    &mir.CodeRegion{From: "mmul:dot"},
		Metrics:   []mir.Metric{{Name: "COUNT"}},
		Entities:  []mir.Entity{{Kind: mir.Process, ID: "*"}}, // values of whole processes
		Activated: true, Flush: true,
		Lease: time.Minute, // for when this program dies
	})
	if err != nil {
		log.Fatal(err)
	}
	defer probe.Remove(ctx)

	dot(3) // the observed program calls dot three times

	reading, err := probe.Value(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range reading.Values {
		fmt.Println(v.Process, v.Metric, v.Text)
	}
	// Output: p_1 COUNT 3
}

// Errors have a kind, and one fault for each reason.
func ExampleError() {
	ctx := context.Background()
	mirador, err := client.New("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer mirador.Close()
	_, err = mirador.Instrument(ctx, "mmul", &mir.InstrRequest{
		Region: &mir.CodeRegion{From: "mmul:dut"}, Metrics: []mir.Metric{{Name: "COUNT"}}, Activated: true, Flush: true,
	})
	var refused *client.Error
	switch {
	case errors.Is(err, client.ErrNotFound) && errors.As(err, &refused):
		for _, fault := range refused.Faults {
			fmt.Printf("column %d: %s\n", fault.Pos.Column, fault.Msg)
		}
	case err != nil:
		log.Fatal(err)
	}
	// Output: column 41: no unit mmul:dut; did you mean mmul:dot?
}

// The stream of a probe has a document for each delivery. The loop ends when the probe is removed
// or the context ends.
func ExampleProbe_Stream() {
	ctx := context.Background()
	mirador, err := client.New("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer mirador.Close()
	delivery := int64(10) // milliseconds
	probe, err := mirador.Instrument(ctx, "mmul", &mir.InstrRequest{
		Region: &mir.CodeRegion{From: "mmul:dot"}, Metrics: []mir.Metric{{Name: "COUNT"}},
		Measuring: &mir.Measuring{Delivery: &delivery}, Activated: true, Flush: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	dot(2) // the observed program calls dot twice
	stream, err := probe.Stream(ctx, 0)
	if err != nil {
		log.Fatal(err)
	}
	for reading, err := range stream.Readings() {
		if err != nil {
			log.Fatal(err)
		}
		if reading.Lost != 0 {
			fmt.Println("this program was too slow for some documents")
		}
		fmt.Println(reading.Values[0].Thread, reading.Values[0].Text)
		if err := probe.Remove(ctx); err != nil { // ends the stream
			log.Fatal(err)
		}
		break
	}
	// Output: t_1 2
}

func ExampleClient_Snapshot() {
	mirador, err := client.New("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer mirador.Close()
	snapshot, err := mirador.Snapshot(context.Background(), "mmul", mir.SnapshotRequest{Named: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, node := range snapshot.Entities {
		for _, process := range node.Children {
			fmt.Println(node.Name, process.ID, process.Name, "has", len(process.Children), "thread")
		}
	}
	// Output: here p_1 mmul has 1 thread
}
