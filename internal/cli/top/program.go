// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Run shows the live view until the user quits or ctx ends. It scrapes once before it takes the terminal, so that a
// missing agent is an error and not an empty screen.
func Run(ctx context.Context, in, out *os.File, source Source, o Options) error {
	first, err := source.Scrape(ctx)
	if err != nil {
		return err
	}
	p := program{ctx: ctx, source: source, model: newModel(o, first)}
	_, err = tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if err != nil && !errors.Is(err, tea.ErrInterrupted) && ctx.Err() == nil {
		return fmt.Errorf("running the view: %w", err)
	}
	return nil
}

// program connects the model, the source and the terminal.
type program struct {
	ctx    context.Context
	source Source
	model  model
}

// due is the message that the next scrape is due. scraped holds its result, listed the result of a request for threads, and
// toggled that of one to switch something.
type (
	due     struct{}
	scraped struct {
		sample *Sample
		err    error
		at     time.Time
		took   time.Duration
	}
	listed struct {
		workload string
		list     *ThreadList
		err      error
	}
	toggled struct {
		said string
		err  error
	}
)

// Init waits for the second scrape. The first was made before.
func (p program) Init() tea.Cmd { return p.wait(0) }

// wait waits one interval after the last scrape. A slow agent gets more time between two scrapes.
func (p program) wait(took time.Duration) tea.Cmd {
	const share = 4
	rest := max(p.model.opts.Interval-took, p.model.opts.Interval/share)
	return tea.Tick(rest, func(time.Time) tea.Msg { return due{} })
}

func (p program) scrape() tea.Msg {
	begin := time.Now()
	s, err := p.source.Scrape(p.ctx)
	end := time.Now()
	return scraped{s, err, end, end.Sub(begin)}
}

// threads requests the threads of the shown workload.
func (p program) threads() tea.Msg {
	workload := p.model.threads.workload
	list, err := p.source.Threads(p.ctx, workload)
	return listed{workload, list, err}
}

// Update passes messages to the model.
func (p program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.model = p.model.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return p.press(msg)
	case due:
		if p.model.showsThreads() {
			return p, tea.Batch(p.scrape, p.threads)
		}
		return p, p.scrape
	case toggled:
		p.model = p.model.switched(msg.said, msg.err)
	case listed:
		p.model = p.model.takeThreads(msg.workload, msg.list, msg.err)
	case scraped:
		if msg.err != nil {
			p.model = p.model.lose(msg.err, msg.at)
		} else {
			p.model = p.model.take(msg.sample)
		}
		return p, p.wait(msg.took)
	}
	return p, nil
}

// press handles a key. It requests threads immediately when the user opens their page.
func (p program) press(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	looked, asked, quit := p.model.showsThreads(), p.model.asked, false
	if p.model, quit = p.model.press(key.String(), key.Text); quit {
		return p, tea.Quit
	}
	if !looked && p.model.showsThreads() {
		return p, p.threads
	}
	if what := p.model.asked; asked == nil && what != nil {
		return p, func() tea.Msg {
			said, err := p.source.Toggle(p.ctx, *what)
			return toggled{said, err}
		}
	}
	return p, nil
}

// View draws the model on the alternate screen, so that the shell's lines reappear at the end.
func (p program) View() tea.View {
	v := tea.NewView(screen{&p.model}.view())
	v.AltScreen = true
	v.WindowTitle = "teescope top " + clean(p.model.opts.Target)
	return v
}
