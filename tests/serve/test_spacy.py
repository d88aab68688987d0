"""kbtools in pipelines of the real spaCy: the component, and the knowledge base of spaCy's own linker."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kbtools
from kbtools.kb.vector_index import ExactVectors

spacy = pytest.importorskip("spacy", reason="needs spaCy: pip install 'kbtools[spacy]'")

TEXT = "Stephen King wrote It, but J. K. Rowling did not."


@pytest.fixture
def nlp(sample_path: Path) -> Any:
    """Make a blank English pipeline with the component."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("kbtools_linker", config={"kb": str(sample_path)})
    return pipeline


@pytest.fixture
def ruled(sample_path: Path) -> Any:
    """Make a pipeline whose entities a ruler finds before the component links them."""
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns(
        [
            {"label": "PERSON", "pattern": "Stephen King"},
            {"label": "PERSON", "pattern": "Nobody Known"},
            {"label": "WORK", "pattern": "Harry Potter"},
        ]
    )
    pipeline.add_pipe("kbtools_linker", config={"kb": str(sample_path)})
    return pipeline


def test_spans_are_found_where_no_entities_are(nlp: Any) -> None:
    doc = nlp(TEXT)

    linked = {ent.text: ent.kb_id_ for ent in doc.ents}
    assert linked["Stephen King"] == "m.0jt90f5"
    assert linked["J. K. Rowling"] == "m.042xh"
    assert {ent.label_ for ent in doc.ents} == {"ENTITY"}
    assert doc.ents[0]._.kbtools[0]["id"] == doc.ents[0].kb_id_


def test_entities_of_another_component_are_linked_where_certain(ruled: Any) -> None:
    doc = ruled("Stephen King met Nobody Known.")

    assert [(ent.text, ent.label_, ent.kb_id_) for ent in doc.ents] == [
        ("Stephen King", "PERSON", "m.0jt90f5"),
        ("Nobody Known", "PERSON", ""),
    ]


def test_displacy_links_entities_to_their_source(sample_path: Path) -> None:
    pipeline = spacy.blank("en")
    config = {"kb": str(sample_path), "kb_url": "https://example.org/{id}"}
    linker = pipeline.add_pipe("kbtools_linker", config=config)

    html = spacy.displacy.render(pipeline(TEXT), style="ent", options=linker.displacy_options, jupyter=False)

    assert 'href="https://example.org/m.042xh"' in html


def test_namesakes_are_candidates_best_first(ruled: Any) -> None:
    (ent,) = ruled("She reads Harry Potter .").ents

    assert [candidate["id"] for candidate in ent._.kbtools] == ["m.078ffw", "m.0kba084"]


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_nothing_is_found_in_nothing(nlp: Any, text: str) -> None:
    assert nlp(text).ents == ()


def test_a_saved_pipeline_links_as_before(ruled: Any, tmp_path: Path) -> None:
    ruled.to_disk(tmp_path / "pipeline")

    loaded = spacy.load(tmp_path / "pipeline")

    assert [ent.kb_id_ for ent in loaded("Stephen King").ents] == ["m.0jt90f5"]


def test_a_document_that_is_saved_keeps_its_candidates(nlp: Any) -> None:
    doc = nlp(TEXT)

    copy = spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())

    assert copy.ents[0]._.kbtools[0]["id"] == "m.0jt90f5"


def test_a_pipeline_without_a_knowledge_base_is_refused() -> None:
    with pytest.raises(kbtools.BadArgument, match="name the knowledge base"):
        spacy.blank("en").add_pipe("kbtools_linker")


def test_the_own_linker_of_spacy_gets_candidates_with_priors(sample_path: Path) -> None:
    pipeline = spacy.blank("en")
    kb = spacy.registry.misc.get("kbtools.knowledge_base.v1")(kb=str(sample_path))(pipeline.vocab)
    doc = pipeline("Harry Potter")

    (batch,) = kb.get_candidates_batch([doc[0:2]])

    assert [candidate.entity_ for candidate in batch] == ["m.078ffw", "m.0kba084"]
    assert sum(candidate.prior_prob for candidate in batch) == pytest.approx(1)
    assert batch[0].alias_ == "Harry Potter"
    assert list(batch[0].entity_vector) == [0.0] * 64


def test_vectors_are_those_of_the_entities(sample_path: Path) -> None:
    from kbtools.serve.spacy_linker import SpacyKnowledgeBase

    kb = SpacyKnowledgeBase(spacy.blank("en").vocab, str(sample_path))
    (row,) = kb.answerer.kb.rows(["m.042xh"])
    kb.vectors = ExactVectors(np.array([row], dtype=np.uint32), np.array([[3.0, 4.0]], dtype=np.float32))

    assert kb.get_vector("m.042xh") == pytest.approx([0.6, 0.8])


def test_the_own_linker_of_spacy_runs_and_is_saved(sample_path: Path, tmp_path: Path) -> None:
    from kbtools.serve.spacy_linker import SpacyKnowledgeBase

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Stephen King"}])
    linker = pipeline.add_pipe("entity_linker", config={"incl_context": False})
    loader = spacy.registry.misc.get("kbtools.knowledge_base.v1")(kb=str(sample_path))
    linker.set_kb(loader)
    doc = pipeline("Stephen King writes.")
    example = spacy.training.Example.from_dict(
        doc.copy(),
        {"entities": [(0, 12, "PERSON")], "links": {(0, 12): {"m.0jt90f5": 1.0}}, "sent_starts": [1, 0, 0, 0]},
    )
    linker.initialize(lambda: [example], nlp=pipeline, kb_loader=loader)

    linked = pipeline("Stephen King writes.")
    kb = SpacyKnowledgeBase(pipeline.vocab, str(sample_path)).from_bytes(linker.kb.to_bytes())

    assert [ent.kb_id_ for ent in linked.ents] == ["m.0jt90f5"]
    assert next(iter(kb.get_candidates(linked[0:2]))).entity_ == "m.0jt90f5"


@pytest.mark.parametrize(
    ("threshold", "linked"), [(0.0, True), (0.3, True), (0.9, False)], ids=["none", "below its score", "above it"]
)
def test_an_entity_gets_an_id_from_the_threshold_on(sample_path: Path, threshold: float, linked: bool) -> None:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "WORK", "pattern": "Harry Potter"}])
    pipeline.add_pipe("kbtools_linker", config={"kb": str(sample_path), "threshold": threshold, "limit": 1})

    (ent,) = pipeline("She reads Harry Potter .").ents

    assert bool(ent.kb_id_) is linked
    assert [candidate["id"] for candidate in ent._.kbtools] == ["m.078ffw"]


def test_the_threshold_itself_is_enough(ruled: Any) -> None:
    ruled.get_pipe("kbtools_linker").threshold = 1.0

    (ent,) = ruled("Stephen King").ents

    assert (ent.kb_id_, ent._.kbtools[0]["prior"]) == ("m.0jt90f5", 1.0)


def test_a_name_that_is_only_similar_is_less_certain(sample_path: Path) -> None:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Stephen Kingg"}])
    linker = pipeline.add_pipe("kbtools_linker", config={"kb": str(sample_path), "threshold": 0.98})

    ids = []
    for threshold in (0.98, 0.9):
        linker.threshold = threshold
        (ent,) = pipeline("Stephen Kingg").ents
        ids.append(ent.kb_id_)

    assert ids == ["", "m.0jt90f5"]
    assert 90 < ent._.kbtools[0]["similarity"] < 98


def test_mentions_have_the_label_threshold_and_limit_of_the_component(sample_path: Path) -> None:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("kbtools_linker", config={"kb": str(sample_path), "label": "THING", "threshold": 0.0, "limit": 1})
    strict = spacy.blank("en")
    strict.add_pipe("kbtools_linker", config={"kb": str(sample_path), "threshold": 1.0})

    doc = pipeline("She reads Harry Potter.")

    assert [(ent.text, ent.label_, len(ent._.kbtools)) for ent in doc.ents] == [("Harry Potter", "THING", 1)]
    assert strict("She reads Harry Potter.").ents == ()


def test_a_span_is_widened_to_whole_tokens(sample_path: Path) -> None:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("kbtools_linker", config={"kb": str(sample_path)})
    words, spaces = ["by", "Stephen", "Kings", "!"], [True, True, False, False]
    doc = spacy.tokens.Doc(pipeline.vocab, words=["by", "Stephen", "King/", "!"], spaces=spaces)

    assert words[1] == "Stephen"
    assert [ent.text for ent in pipeline.get_pipe("kbtools_linker")(doc).ents] == ["Stephen King/"]


def test_a_saved_knowledge_base_keeps_its_limit_and_its_vectors_their_length(kites: Any) -> None:
    from kbtools.answering.answerer import open_kb
    from kbtools.indexers.folder.faiss_index import write_vectors
    from kbtools.kb.vector_index import EntityVectors
    from kbtools.serve.spacy_linker import SpacyKnowledgeBase

    folder = kites(aliases=(("m.9", "The Kite"),), language="en")
    with open_kb(folder) as answerer:
        table = np.array([[3.0, 4.0, 0.0]], dtype=np.float32)
        (row,) = answerer.kb.rows(["m.1"])
        vectors = EntityVectors(np.array([row], dtype=np.uint32), 3, lambda rows: table[rows - row])
        write_vectors(folder, answerer.kb, vectors)
    vocab = spacy.blank("en").vocab
    kb = SpacyKnowledgeBase(vocab, str(folder), limit=1)

    loaded = SpacyKnowledgeBase(vocab, str(folder)).from_bytes(kb.to_bytes())

    (candidate,) = loaded.get_candidates(spacy.blank("en")("The Iron Kite")[:])
    assert (loaded.limit, loaded.entity_vector_length, candidate.alias_) == (1, 3, "The Iron Kite")
    assert loaded.get_vector("m.1") == pytest.approx([0.6, 0.8, 0.0])
    assert loaded.get_vector("m.9") == loaded.get_vector("m.99") == [0.0] * 3
    assert [one.entity_ for one in loaded.get_candidates(spacy.blank("en")("Kite")[:])] == ["m.1"]
