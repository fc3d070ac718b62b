'use strict';

// Okabe and Ito's colours, told apart by all kinds of colour vision; what differs in colour differs
// in its line and mark too.
const COLOURS = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#56B4E9', '#E69F00', '#8C6D1F', '#808080'];
const LINES = ['solid', 'dash', 'dot', 'dashdot', 'longdash'];
const MARKS = ['circle', 'square', 'diamond', 'triangle-up', 'x', 'star'];
const PATTERNS = ['', '/', '.', 'x', '-'];

const dark = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
let charts = [];

// Plotly takes some of HTML for markup.
const text = (words) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
// A name that would leave the chart no room.
const short = (name) => text(name.length > 90 ? `${name.slice(0, 60)}…${name.slice(-29)}` : name);
const of = (list, number) => list[number % list.length];

// ---------------------------------------------------------------- tables

function number(cell) {
  const found = cell.match(/-?\d[\d.]*(e[-+]?\d+)?/i);
  return found ? Number(found[0]) : NaN;
}

// Made once: to compare two texts without it takes ten times as long.
const words = new Intl.Collator();

// Each has a text, and a number if those of its column have one.
function compare(one, other) {
  // What has no number stands behind what has one.
  if (Number.isNaN(one.number) || Number.isNaN(other.number)) {
    return Number.isNaN(one.number) - Number.isNaN(other.number) || words.compare(one.text, other.text);
  }
  return one.number - other.number;
}

// Rows of a table that are laid out at first: with ten thousands a browser does nothing else for a long time.
const MOST = 1000;

class Table {
  constructor(table) {
    this.table = table;
    this.rows = [...table.tBodies[0].rows];
    this.order = this.rows;
    this.most = MOST;
    [this.filter, this.verdict, this.count] = ['filter', 'verdict', 'count'].map((part) => document.getElementById(`${table.id}-${part}`));
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener('click', () => this.sort(heading));
    }
    this.more = document.createElement('p');
    this.more.className = 'more';
    this.all = document.createElement('button');
    this.all.type = 'button';
    this.all.addEventListener('click', () => {
      this.most = Infinity;
      this.show();
    });
    this.more.append(document.createElement('span'), this.all);
    table.parentElement.after(this.more);
    this.filter.addEventListener('input', () => this.show());
    this.verdict.addEventListener('change', () => this.show());
    this.show();
    this.filter.closest('.tools').hidden = false;
  }

  // The texts of the cells of a row: to read those of all takes a while, and not everybody needs them.
  texts(row) {
    this.read ??= new Map(this.rows.map((one) => [one, [...one.cells].map((cell) => cell.textContent.trim())]));
    return this.read.get(row);
  }

  get found() {
    const wanted = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!wanted.length && !this.verdict.value) return this.order;
    this.joined ??= new Map(this.rows.map((row) => [row, this.texts(row).join(' ').toLowerCase()]));
    return this.order.filter((row) => wanted.every((word) => this.joined.get(row).includes(word)) &&
      (!this.verdict.value || this.texts(row)[0].replace(/^[✓✗◐–] /, '') === this.verdict.value));
  }

  show() {
    const found = this.found;
    const next = found.slice(0, this.most);
    const part = document.createDocumentFragment();
    for (const row of next) part.append(row);
    // The others are no part of the page meanwhile: a browser that prints would go through them, hidden or not.
    this.table.tBodies[0].replaceChildren(part);
    this.count.textContent = `${found.length} of ${this.rows.length} figures`;
    this.more.hidden = found.length === next.length;
    this.more.firstChild.textContent = `The first ${next.length} of ${found.length} figures are shown. `;
    this.all.textContent = `Show all ${found.length}`;
  }

  sort(heading) {
    const column = heading.cellIndex;
    const down = heading.getAttribute('aria-sort') === 'ascending';
    for (const other of this.table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const isNumber = heading.className === 'n';
    const keys = this.order.map((row) => {
      const cell = this.texts(row)[column];
      return {row, text: cell, number: isNumber ? number(cell) : NaN, empty: cell === '-' || cell === ''};
    });
    keys.sort((one, other) => {
      if (one.empty || other.empty) return one.empty - other.empty;
      return down ? -compare(one, other) : compare(one, other);
    });
    this.order = keys.map(({row}) => row);
    this.show();
  }

  // A row that a link leads to stands first, whatever else is shown.
  reveal(row) {
    this.filter.value = this.verdict.value = '';
    for (const heading of this.table.tHead.rows[0].cells) heading.removeAttribute('aria-sort');
    this.order = [row, ...this.order.filter((one) => one !== row)];
    this.show();
  }
}

function revealTarget(tables) {
  const id = location.hash.slice(1);
  for (const own of tables) {
    const row = own.rows.find((one) => one.id === id);
    if (!id || !row || row.isConnected) continue;
    own.reveal(row);
    location.replace(location.hash); // only now there is something to lead to
  }
}

// ---------------------------------------------------------------- charts

function colours() {
  const style = getComputedStyle(document.documentElement);
  const light = printing || !dark.matches;
  return {
    text: light ? '#1b2430' : style.getPropertyValue('--text').trim(),
    line: light ? '#d9dee5' : style.getPropertyValue('--line').trim(),
    first: light ? COLOURS[0] : '#3d9be0',
    ends: light ? BAD_AND_GOOD : BAD_AND_GOOD_IN_DARK,
    amounts: light ? AMOUNTS : AMOUNTS_IN_DARK,
    empty: light ? '#f0f1f3' : '#39424f',
  };
}

function traces(chart, shade) {
  const bars = chart.kind !== 'lines';
  const named = new Set();
  return chart.series.map((one) => {
    const colour = one.colour % COLOURS.length ? of(COLOURS, one.colour) : shade.first;
    const group = one.group || one.name;
    const legend = {name: short(group), legendgroup: text(group), showlegend: !named.has(group)};
    named.add(group);
    const value = `${bars ? '%{x:.4~g}%<br>%{y}' : '%{x}: %{y:.4~g}'}<extra>${short(one.name)}</extra>`;
    const places = one.at.map((place) => (typeof place === 'string' ? text(place) : place));
    const [x, y] = bars ? [one.values, places] : [places, one.values];
    if (bars && one.form !== 'marks') {
      return {
        type: 'bar', orientation: 'h', ...legend, x, y, hovertemplate: value,
        marker: {color: colour, pattern: {shape: of(PATTERNS, one.style), fillmode: 'overlay', fgcolor: '#fff', fgopacity: 0.7, size: 6}},
      };
    }
    const mode = {line: 'lines+markers', faint: 'lines', marks: 'markers'}[one.form];
    const mark = bars ? {color: shade.text, symbol: 'line-ns-open', size: 14, line: {width: 3, color: shade.text}} :
      {color: colour, symbol: one.form === 'marks' ? 'star-open' : of(MARKS, one.style), size: one.form === 'marks' ? 16 : 6};
    return {
      type: 'scatter', mode, ...legend, x, y, opacity: one.form === 'faint' ? 0.6 : 1, hovertemplate: value,
      line: {color: colour, dash: one.form === 'faint' ? 'dot' : of(LINES, one.style), width: 2}, marker: mark,
    };
  });
}

function axis(what, shade, numbers = []) {
  const spread = Math.max(...numbers) / Math.min(...numbers);
  return {
    title: {text: text(what.title), standoff: 8},
    type: what.is_logarithmic ? 'log' : '-',
    // Powers would be set in a style of their own, which the policy of the page forbids.
    exponentformat: 'none',
    // Within two decades Plotly finds better places than the decades.
    ...(what.is_logarithmic && spread > 100 ? {dtick: 1} : {}),
    gridcolor: shade.line, zerolinecolor: shade.line, linecolor: shade.line, automargin: true,
  };
}

function layout(chart, shade, width) {
  const bars = chart.kind !== 'lines';
  const groups = chart.kind === 'bars' ? chart.series.filter((one) => one.form !== 'marks').length : 1;
  const xaxis = axis(chart.across, shade);
  const yaxis = bars ?
    {...axis(chart.upwards, shade), type: 'category', autorange: 'reversed', categoryorder: 'array', categoryarray: chart.places.map(text)} :
    axis(chart.upwards, shade, chart.series.flatMap((one) => one.values));
  if (bars) xaxis.rangemode = 'tozero';
  if (bars) Object.assign(yaxis, {tickvals: chart.places.map(text), ticktext: chart.places.map(short)});
  if (chart.kind === 'stacked') xaxis.range = [0, 100];
  if (!bars && chart.across.title.includes('[B]')) {
    const sizes = [[1, '1'], [16, '16'], [256, '256'], [4096, '4 Ki'], [65536, '64 Ki'], [1048576, '1 Mi'], [16777216, '16 Mi']];
    Object.assign(xaxis, {tickvals: sizes.map(([at]) => at), ticktext: sizes.map(([, name]) => name)});
  } else if (!bars) {
    Object.assign(xaxis, {tickvals: chart.places});
  }
  const entries = new Set(chart.series.map((one) => one.group || one.name));
  const widest = 60 + 6.5 * Math.max(...[...entries].map((name) => short(name).length));
  const rows = Math.ceil(entries.size / Math.max(1, Math.floor((width - 80) / widest)));
  // On paper a chart has to go on one page.
  const most = printing ? 480 : Infinity;
  const plot = bars ? Math.min(most, 40 + chart.places.length * (10 + 12 * groups)) : 300;
  return {
    autosize: false, width, height: plot + 90 + 24 * rows,
    barmode: chart.kind === 'stacked' ? 'stack' : 'group', bargap: 0.25,
    font: {color: shade.text, size: printing ? 9 : 12, family: getComputedStyle(document.body).fontFamily},
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    margin: {l: 60, r: 16, t: 12, b: 70 + 24 * rows}, xaxis, yaxis,
    legend: {orientation: 'h', x: 0, y: -60 / plot, yref: 'paper', yanchor: 'top', font: {size: 11}},
    showlegend: true, barcornerradius: 2,
  };
}

// ---------------------------------------------------------------- maps

// From what is bad to what is good, by way of next to nothing; both ends are told apart by all kinds
// of colour vision, and stand out most on their background.
const BAD_AND_GOOD = [['#A33E00', '#D55E00', '#F0A060'], ['#7DB8DE', '#0072B2', '#004A75']];
const BAD_AND_GOOD_IN_DARK = [['#FFC08A', '#EE7B2B', '#8F5534'], ['#3B6C8F', '#56B4E9', '#B5E2FF']];
// What is more stands out more, on either background.
const AMOUNTS = ['#FCE8A6', '#E9B44C', '#CC6677', '#882255', '#332288'];
const AMOUNTS_IN_DARK = ['#5A4FA2', '#9B3A6B', '#CC6677', '#E9B44C', '#FCE8A6'];
const SIGNS = ['x-open', 'hexagram-open', 'square-open', 'triangle-up-open', 'diamond-open', 'circle-open-dot'];

function scale(grid, shade) {
  const steps = (list) => list.map((colour, place) => [place / (list.length - 1), colour]);
  if (grid.colours === 'amount') return steps(shade.amounts);
  if (grid.colours === 'seats') {
    return [shade.empty, COLOURS[4], COLOURS[1]].flatMap((colour, place) => [[place / 3, colour], [(place + 1) / 3, colour]]);
  }
  const [bad, good] = shade.ends;
  const all = [...bad, shade.empty, ...good];
  return steps(grid.colours === 'low' ? all : all.reverse());
}

// What a value is on the scale of the colours.
const scaledBy = (grid) => (grid.measure.is_logarithmic ? Math.log10 : (value) => value);
const endsOf = (grid) => (grid.colours === 'seats' ? [-0.5, 2.5] : grid.ends.map(scaledBy(grid)));

// Pixels of a letter in a cell, and of the widest cell.
const LETTER = 5.5;
const WIDEST = 62;

// The panels in a chart of this width, in pixels.
function places(grid, width) {
  const across = Math.min(grid.panels.length, Math.max(1, Math.floor(width / (printing ? 320 : 340))));
  const down = Math.ceil(grid.panels.length / across);
  const longest = Math.max(...grid.rows.map((name) => name.length));
  const [left, right, below] = [44 + 6 * Math.min(longest, 24), 8, 56];
  const above = grid.panels.length > 1 ? 24 : 8;
  const [columns, rows] = [grid.columns.length, grid.rows.length];
  const most = Math.max(80, width / across - left - right);
  const cell = Math.min(grid.labels.length ? WIDEST : 36, most / columns, printing ? (480 / down - above - below) / rows : Infinity);
  const wide = Math.min(most, Math.max(cell * columns, 200));
  const high = Math.max(Math.min(cell, 36) * rows, Math.min(64, 20 * rows));
  const [step, drop] = [left + wide + right, above + high + below];
  return {across, left, above, wide, high, step, drop, cell, height: down * drop + 52 + (grid.marks.length ? 28 : 0), bar: down * drop};
}

function gridTraces(grid, shade, width) {
  const {cell} = places(grid, width);
  const scaled = scaledBy(grid);
  const gap = cell > 8 ? 1 : 0.2; // without any Plotly would set a style that the policy forbids
  const between = grid.colours === 'amount' ? ' to ' : ', ';
  const unit = grid.measure.title.endsWith('[B]') ? 'B' : '';
  const value = {seats: '', amount: `: %{customdata:.3~s}${unit}`}[grid.colours] ?? ': %{customdata:.4~g}';
  // Else they would stand over each other.
  const fitting = (label) => (label.length * LETTER > cell ? '' : label);
  const labels = cell < (grid.colours === 'seats' ? 14 : 30) ? [] : grid.labels.map((row) => row.map(fitting));
  const all = (texts) => texts.map((row) => row.map(text));
  const found = [];
  grid.panels.forEach((panel, place) => {
    const axes = {xaxis: `x${place + 1}`, yaxis: `y${place + 1}`};
    found.push({
      type: 'heatmap', ...axes, coloraxis: 'coloraxis', xgap: gap, ygap: gap, hoverongaps: false,
      z: panel.values.map((row) => row.map((value) => (value === null ? null : scaled(value)))), customdata: panel.values,
      hovertext: grid.texts.length ? all(grid.texts) : grid.rows.map((row) => grid.columns.map((column) => text(`${row}${between}${column}`))),
      hovertemplate: `%{hovertext}${value}<extra>${text(panel.title)}</extra>`,
      ...(labels.length ? {text: all(labels), texttemplate: '%{text}', textfont: {size: 10}} : {}),
    });
    const aside = labels.length ? 0.3 : 0; // beside what is written in the cell
    for (const mark of grid.marks) {
      found.push({
        type: 'scatter', mode: 'markers', ...axes, name: text(mark.name), legendgroup: text(mark.name), showlegend: !place,
        x: mark.cells.map(([, column]) => column + aside), y: mark.cells.map(([row]) => row - aside), hoverinfo: 'skip',
        marker: {symbol: of(SIGNS, mark.style), size: Math.min(10, Math.max(7, cell)), color: shade.text, line: {width: mark.cells.length > 16 ? 1 : 2}},
      });
    }
  });
  const bar = `${grid.panels.length + 1}`;
  const [first, last] = endsOf(grid);
  const steps = grid.colours === 'seats' ? 3 : 120;
  const shown = Array.from({length: steps}, (_, step) => first + (step + 0.5) * (last - first) / steps);
  found.push({
    type: 'heatmap', xaxis: `x${bar}`, yaxis: `y${bar}`, x: shown, y: [0], z: [shown], coloraxis: 'coloraxis',
    ygap: 0.1, hoverinfo: 'skip', showlegend: false,
  });
  return found;
}

// Where numbers stand at the bar of colours.
function ticks(grid) {
  if (grid.colours === 'seats') return {tickvals: [0, 1, 2], ticktext: ['none', '1', 'more']};
  if (!grid.measure.is_logarithmic) return {};
  const [first, last] = grid.ends;
  const powers = Array.from({length: 17}, (_, power) => power).filter((power) => 10 ** power >= first && 10 ** power <= last);
  if (grid.colours !== 'amount') return {tickvals: [first, 1, last].map(Math.log10), ticktext: [first, 1, last].map(String)};
  return {tickvals: powers, ticktext: powers.map((power) => `${10 ** (power % 3)} ${['', 'k', 'M', 'G', 'T', 'P'][Math.floor(power / 3)]}`)};
}

function gridLayout(grid, shade, width) {
  const {across, left, above, wide, high, step, drop, height, bar} = places(grid, width);
  const small = {size: printing ? 8 : 11};
  const own = {
    showgrid: false, zeroline: false, linecolor: shade.line, ticks: '', fixedrange: true, tickangle: 0,
    tickfont: {size: printing ? 8 : 10}, exponentformat: 'none',
  };
  const named = (names, room, each) => {
    const every = Math.ceil(names.length / Math.max(1, Math.floor(room / each)));
    const shown = names.map((_, place) => place).filter((place) => place % every === 0);
    return {tickvals: shown, ticktext: shown.map((place) => text(names[place].length > 24 ? `${names[place].slice(0, 23)}…` : names[place]))};
  };
  const longest = Math.max(...grid.columns.map((name) => name.length));
  const [axes, annotations] = [{}, []];
  grid.panels.forEach((panel, place) => {
    const start = (place % across) * step + left;
    const top = Math.floor(place / across) * drop + above;
    axes[`xaxis${place + 1}`] = {
      ...own, title: {text: text(grid.across.title), standoff: 4, font: small}, anchor: `y${place + 1}`,
      domain: [start / width, Math.min(1, (start + wide) / width)], range: [-0.5, grid.columns.length - 0.5],
      ...named(grid.columns, wide, 14 + 6 * Math.min(longest, 24)),
    };
    axes[`yaxis${place + 1}`] = {
      ...own, title: {text: text(grid.upwards.title), standoff: 4, font: small}, anchor: `x${place + 1}`,
      domain: [1 - (top + high) / height, 1 - top / height], range: [grid.rows.length - 0.5, -0.5],
      ...named(grid.rows, high, 13),
    };
    annotations.push({
      text: text(panel.title), showarrow: false, xref: 'paper', yref: 'paper', x: start / width, y: 1 - top / height,
      xanchor: 'left', yanchor: 'bottom', font: {size: printing ? 9 : 12},
    });
  });
  const number = grid.panels.length + 1;
  const ends = endsOf(grid);
  axes[`xaxis${number}`] = {
    ...own, title: {text: text(grid.measure.title), standoff: 2, font: small}, anchor: `y${number}`, range: ends, ...ticks(grid),
    domain: [left / width, Math.min(1, (left + Math.min(420, width - left - 12)) / width)],
  };
  axes[`yaxis${number}`] = {
    ...own, showticklabels: false, anchor: `x${number}`, domain: [1 - (bar + 12) / height, 1 - (bar + 2) / height], range: [-0.5, 0.5],
  };
  return {
    autosize: false, width, height, margin: {l: 0, r: 0, t: 0, b: 0}, annotations, ...axes,
    font: {color: shade.text, size: printing ? 9 : 12, family: getComputedStyle(document.body).fontFamily},
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    coloraxis: {colorscale: scale(grid, shade), cmin: ends[0], cmax: ends[1], showscale: false},
    showlegend: grid.marks.length > 0,
    legend: {orientation: 'h', x: left / width, y: 0, yanchor: 'bottom', font: {size: 11}},
  };
}

// ---------------------------------------------------------------- all of them

function draw(place, width) {
  const shade = colours();
  const box = document.querySelector(`#c${place + 1} .chart`);
  const chart = charts[place];
  const size = width ?? Math.max(280, box.clientWidth);
  box.classList.add('done');
  const config = {displaylogo: false, displayModeBar: false, responsive: false};
  const [those, around] = chart.kind === 'grid' ? [gridTraces, gridLayout] : [traces, layout];
  return window.Plotly.react(box, those(chart, shade, size), around(chart, shade, size), config);
}

// What stands in the cells of a map of seats takes more room than half of the page where it is long.
const isLong = (grid) => grid.colours === 'seats' && grid.columns.length * LETTER * Math.max(0, ...grid.labels.flat().map((label) => label.length)) > 400;
const isWide = (chart) => (chart.kind === 'grid' ? chart.panels.length > 1 || chart.columns.length > 64 || isLong(chart) : chart.kind !== 'lines');

async function inflate(packed) {
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

async function start() {
  const embedded = (name) => document.getElementById(name).textContent;
  if (!embedded('data')) return;
  charts = JSON.parse(await inflate(embedded('data')));
  const script = document.createElement('script');
  script.textContent = await inflate(embedded('plotly'));
  document.head.append(script);
  document.documentElement.classList.add('drawn');
  const drawn = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      const place = Number(entry.target.id.slice(1)) - 1;
      seen.unobserve(entry.target);
      drawn.add(place);
      draw(place);
    }
  }, {rootMargin: '600px'});
  charts.forEach((chart, place) => {
    const figure = document.getElementById(`c${place + 1}`);
    figure.classList.toggle('wide', isWide(chart));
    seen.observe(figure);
  });
  const again = () => drawn.forEach((place) => draw(place));
  let resized;
  addEventListener('resize', () => {
    clearTimeout(resized);
    resized = setTimeout(again, 150);
  });
  dark.addEventListener('change', again);
  addEventListener('beforeprint', () => {
    printing = true;
    charts.forEach((chart, place) => {
      seen.unobserve(document.getElementById(`c${place + 1}`));
      drawn.add(place);
      draw(place, isWide(chart) ? 980 : 470);
    });
  });
  addEventListener('afterprint', () => {
    printing = false;
    again();
  });
  document.documentElement.dataset.ready = 'yes';
}

const tables = [...document.querySelectorAll('table.figures')].map((table) => new Table(table));
document.documentElement.classList.remove('arriving');
revealTarget(tables);
addEventListener('hashchange', () => revealTarget(tables));
start();
